package repository_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPackageDocs(t *testing.T) {
	for _, p := range packages(t) {
		var documented []string
		for _, f := range p.code() {
			doc := f.syntax.Doc.Text()
			if doc == "" {
				continue
			}
			documented = append(documented, f.path)
			if want := opening(p, f); !strings.HasPrefix(doc, want) {
				t.Errorf("%s: the package comment begins %q: begin it with %q", f.path, firstLine(doc), want)
			}
		}
		switch len(documented) {
		case 0:
			t.Errorf("package %s has no package comment: say in one file what distinguishes it, beginning with %q", p.name, opening(p, p.code()[0]))
		case 1:
		default:
			t.Errorf("package %s has package comments in %s: keep one", p.name, strings.Join(documented, " and "))
		}
	}
}

// opening returns how a package comment must begin.
func opening(p *goPackage, f *goFile) string {
	if f.syntax.Name.Name == "main" {
		return "Command " + p.name[strings.LastIndex(p.name, "/")+1:] + " "
	}
	return "Package " + f.syntax.Name.Name + " "
}

func TestExportedNamesHaveDocs(t *testing.T) {
	for _, p := range packages(t) {
		if !p.public() {
			continue
		}
		for _, f := range p.code() {
			for _, name := range undocumented(f.syntax) {
				t.Errorf("%s:%d: %s has no doc comment: say what it promises", f.path, f.line(name), name.Name)
			}
		}
	}
}

// undocumented returns the exported names at the top of a file that have no comment. One comment on a group of constants or
// variables is enough for all of them.
func undocumented(file *ast.File) (names []*ast.Ident) {
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Doc == nil && d.Name.IsExported() && exportedReceiver(d) {
				names = append(names, d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					if s.Name.IsExported() && s.Doc == nil && (d.Doc == nil || len(d.Specs) > 1) {
						names = append(names, s.Name)
					}
				case *ast.ValueSpec:
					if d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, exported(s.Names)...)
					}
				}
			}
		}
	}
	return names
}

func exported(names []*ast.Ident) []*ast.Ident {
	return slices.DeleteFunc(slices.Clone(names), func(n *ast.Ident) bool { return !n.IsExported() })
}

// standardMethods are documented by the interface of the standard library that they implement.
var standardMethods = []string{
	"Error", "Is", "As", "Unwrap", "String", "GoString", "Format", "Len", "Less", "Swap",
	"MarshalJSON", "UnmarshalJSON", "MarshalText", "UnmarshalText", "MarshalYAML", "UnmarshalYAML",
}

// exportedReceiver reports whether a function belongs to the package's documentation: it has no receiver, or one whose type is
// exported, and it is not one of the standard methods.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	if slices.Contains(standardMethods, d.Name.Name) {
		return false
	}
	typ := d.Recv.List[0].Type
	for {
		switch t := typ.(type) {
		case *ast.StarExpr:
			typ = t.X
		case *ast.ParenExpr:
			typ = t.X
		case *ast.IndexExpr:
			typ = t.X
		case *ast.IndexListExpr:
			typ = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return false
		}
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// pathInText matches the Go files that a document names.
var pathInText = regexp.MustCompile("`([a-z_][a-z0-9_/]*[.]go)`")

// TestArchitectureNamesExistingFiles keeps the map of the code true.
func TestArchitectureNamesExistingFiles(t *testing.T) {
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	named := pathInText.FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Fatalf("ARCHITECTURE.md names %d files: is %s still right?", len(named), pathInText)
	}
	for _, m := range named {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("ARCHITECTURE.md names %s, which does not exist: write where its code is now", m[1])
		}
	}
}
