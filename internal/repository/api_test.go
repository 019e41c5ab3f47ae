package repository_test

import (
	"go/ast"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// apiPage says which packages are API.
const apiPage = "docs/api.md"

// The headings of the tables of apiPage.
const (
	apiTable      = "## API"
	noPromise     = "## Importable, without the promise"
	programsTable = "## Names for the program only"
)

// TestAPIPage compares the list of packages that are API, and of those that are not, with what programs can import.
func TestAPIPage(t *testing.T) {
	listed := readAPITable(t, apiTable)
	for _, name := range readAPITable(t, noPromise) {
		if slices.Contains(listed, name) {
			t.Errorf("%s: package %s is API, and has no promise: delete one", apiPage, name)
		}
		listed = append(listed, name)
	}
	for _, p := range packages(t) {
		switch at := slices.Index(listed, p.name); {
		case at >= 0 && !p.public():
			t.Errorf("%s names package %s, which programs cannot import: delete it", apiPage, p.name)
		case at < 0 && p.public():
			t.Errorf("%s does not name package %s: is it API?", apiPage, p.name)
		case at >= 0:
			listed = slices.Delete(listed, at, at+1)
		}
	}
	for _, name := range listed {
		t.Errorf("%s names package %s, which is not there, or named twice: delete it", apiPage, name)
	}
}

// TestAPINeedsNoInternalName accepts no exported name of an API package that programs can only use if they name a type of an internal package. Those
// that are for the program of this repository are in a table of apiPage.
func TestAPINeedsNoInternalName(t *testing.T) {
	listed := readAPITable(t, programsTable)
	api := readAPITable(t, apiTable)
	for _, p := range packages(t) {
		if !slices.Contains(api, p.name) {
			continue
		}
		for _, f := range p.code() {
			for _, use := range internalNames(f.syntax) {
				name := p.name + "." + use.of
				if at := slices.Index(listed, name); at >= 0 {
					listed = slices.Delete(listed, at, at+1)
					continue
				}
				t.Errorf("%s: programs that use %s must name %s, and cannot: take another type, give that one a name here with an alias, or add %s to %s",
					f.path, name, use.needs, name, apiPage)
			}
		}
	}
	for _, name := range listed {
		t.Errorf("%s: programs can use %s like all others: delete it from the table", apiPage, name)
	}
}

// TestInternalNamesAreFound is about the check itself.
func TestInternalNamesAreFound(t *testing.T) {
	const source = `package p

import (
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/strictyaml"
)

type Named = proc.Result

type hidden struct{ C proc.Command }

type Host struct {
	Box      *proc.Command
	Each     func(p int) proc.Result
	Run      func(proc.Command)
	Problems []strictyaml.Finding
	own      proc.Command
}

type Runner interface {
	Start(c proc.Command) error
	Stop() proc.Result
}

type Wrapped proc.Command

func Read(text string) (proc.Result, error)
func Run(cs ...proc.Command)
func Visit(f func(strictyaml.Finding))
func (h *Host) Start(c map[string]proc.Command)
func (h hidden) Start(c proc.Command)
func run(c proc.Command)
`
	var got []string
	for _, use := range internalNames(parseText(t, source)) {
		got = append(got, use.of+" "+use.needs)
	}
	want := []string{
		"Host.Box proc.Command", "Host.Each proc.Result", "Host.Run proc.Command", "Runner.Start proc.Command", "Runner.Stop proc.Result",
		"Wrapped proc.Command", "Run proc.Command", "Visit strictyaml.Finding", "Host.Start proc.Command",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// parseText parses the text of a Go file.
func parseText(t *testing.T, source string) *ast.File {
	t.Helper()
	name := path.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return f.syntax
}

var codeInText = regexp.MustCompile("`([^`]+)`")

// readAPITable returns the names in the first cells of a table of apiPage.
func readAPITable(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile(apiPage)
	if err != nil {
		t.Fatalf("%v: write which packages are API", err)
	}
	names := readNames(string(text), heading)
	if len(names) == 0 {
		t.Fatalf("%s has no heading %q with a table that has names", apiPage, heading)
	}
	return names
}

// readNames returns the names in the first cells of the table below a heading. build/apidiff, which is another module,
// reads the page by the same rules.
func readNames(page, heading string) (names []string) {
	_, table, _ := strings.Cut("\n"+page, "\n"+heading+"\n")
	table, _, _ = strings.Cut(table, "\n## ")
	for line := range strings.Lines(table) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) < 4 {
			continue
		}
		for _, m := range codeInText.FindAllStringSubmatch(cells[1], -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestAPIPageIsReadAlike reads the page that the test of the same name of build/apidiff reads.
func TestAPIPageIsReadAlike(t *testing.T) {
	page, err := os.ReadFile("build/apidiff/testdata/api.md")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("build/apidiff/testdata/api.names")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, heading := range []string{apiTable, programsTable} {
		for _, name := range readNames(string(page), heading) {
			got.WriteString(heading + ": " + name + "\n")
		}
	}
	if got.String() != string(want) {
		t.Errorf("got:\n%s\nwant:\n%s", got.String(), want)
	}
}

// readOnlyTypes are internal types that programs get and read, and need not name.
var readOnlyTypes = []string{"strictyaml.Finding", "strictyaml.Pos"}

// An internalUse is a type of an internal package that programs would have to name.
type internalUse struct {
	of    string // the exported name: Func, Type.Method or Type.Field
	needs string // such as proc.Command
}

// internalNames returns the exported names of a file that programs can only use if they name a type of an internal package: it is a parameter, or the
// type of a field, or a part of an interface or a function type. What is returned needs no name, and an alias gives one.
func internalNames(file *ast.File) (uses []internalUse) {
	imported := internalImports(file)
	add := func(of string, n ast.Node, ignored ...string) {
		needs := slices.DeleteFunc(selectorsOf(n, imported), func(name string) bool { return slices.Contains(ignored, name) })
		if len(needs) > 0 {
			uses = append(uses, internalUse{of, needs[0]})
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && exportedReceiver(d) {
				add(receiverPrefix(d)+d.Name.Name, d.Type.Params)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				s, ok := s.(*ast.TypeSpec)
				if !ok || !s.Name.IsExported() || s.Assign.IsValid() {
					continue
				}
				for _, field := range exportedFields(s.Type) {
					add(s.Name.Name+"."+field.name, field.typ, readOnlyTypes...)
				}
				if !hasFields(s.Type) {
					add(s.Name.Name, s.Type)
				}
			}
		}
	}
	return uses
}

// internalImports returns the names by which a file imports internal packages.
func internalImports(file *ast.File) (names []string) {
	for _, spec := range file.Imports {
		imported := strings.Trim(spec.Path.Value, `"`)
		if !slices.Contains(strings.Split(imported, "/"), "internal") {
			continue
		}
		name := path.Base(imported)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		names = append(names, name)
	}
	return names
}

// selectorsOf returns the names of some packages that a type has, such as proc.Command.
func selectorsOf(n ast.Node, of []string) (names []string) {
	ast.Inspect(n, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && slices.Contains(of, x.Name) {
				names = append(names, x.Name+"."+s.Sel.Name)
			}
		}
		return true
	})
	return names
}

// receiverPrefix returns the type of a method's receiver and a dot; "" for a function.
func receiverPrefix(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	prefix := ""
	ast.Inspect(d.Recv.List[0].Type, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && prefix == "" {
			prefix = id.Name + "."
		}
		return true
	})
	return prefix
}

// A typeField is a field of a struct, or a method of an interface.
type typeField struct {
	name string
	typ  ast.Expr
}

// exportedFields returns the exported fields or methods of a type.
func exportedFields(typ ast.Expr) (fields []typeField) {
	var list *ast.FieldList
	switch typ := typ.(type) {
	case *ast.StructType:
		list = typ.Fields
	case *ast.InterfaceType:
		list = typ.Methods
	default:
		return nil
	}
	for _, field := range list.List {
		for _, name := range exported(field.Names) {
			fields = append(fields, typeField{name.Name, field.Type})
		}
	}
	return fields
}

// hasFields reports whether a type is a struct or an interface.
func hasFields(typ ast.Expr) bool {
	switch typ.(type) {
	case *ast.StructType, *ast.InterfaceType:
		return true
	}
	return false
}
