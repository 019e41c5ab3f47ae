package repository_test

import (
	"fmt"
	"go/ast"
	"go/doc/comment"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// TestPageLinks accepts no link of a page to a file or a heading that does not exist. Links to other places are not followed.
func TestPageLinks(t *testing.T) {
	var pages []string
	if err := walk(func(name string) error {
		if path.Ext(name) == ".md" && !slices.Contains(strings.Split(name, "/"), "testdata") {
			pages = append(pages, name)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for i, line := range readProse(t, page) {
			for _, target := range linkTargets(line) {
				found++
				if why := checkLink(t, page, target); why != "" {
					t.Errorf("%s:%d: the link %s leads nowhere: %s: write where it is now", page, i+1, target, why)
				}
			}
		}
	}
	if found < 200 {
		t.Fatalf("%d pages have %d links to other pages: is %s still right?", len(pages), found, linkInPage)
	}
}

// linkInPage matches the target of a link or of a picture.
var linkInPage = regexp.MustCompile(`\]\(<?([^()<>\s]+)>?(?: "[^"]*")?\)`)

// codeInLine matches code in a line of a page.
var codeInLine = regexp.MustCompile("`[^`]*`")

// readProse returns the lines of a page, those in blocks of code empty.
func readProse(t *testing.T, page string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	fence := ""
	for i, line := range lines {
		trimmed := strings.TrimSpace(line)
		marks := trimmed[:len(trimmed)-len(strings.TrimLeft(trimmed, "`"))]
		switch {
		case fence != "":
			lines[i] = ""
			if trimmed == fence {
				fence = ""
			}
		case len(marks) >= 3:
			lines[i] = ""
			fence = marks
		}
	}
	return lines
}

// linkTargets returns the targets of the links of a line that lead to files and headings of the repository.
func linkTargets(line string) (targets []string) {
	for _, m := range linkInPage.FindAllStringSubmatch(codeInLine.ReplaceAllString(line, "x"), -1) {
		if target := m[1]; !strings.Contains(target, ":") && !strings.HasPrefix(target, "/") {
			targets = append(targets, target)
		}
	}
	return targets
}

// checkLink returns what is wrong with a link of a page, "" if nothing is.
func checkLink(t *testing.T, page, target string) string {
	t.Helper()
	file, heading, _ := strings.Cut(target, "#")
	name := page
	if file != "" {
		name = path.Join(path.Dir(page), file)
	}
	if _, err := os.Stat(filepath.FromSlash(name)); err != nil {
		return "there is no " + name
	}
	if heading != "" && path.Ext(name) == ".md" && !slices.Contains(headingAnchors(readProse(t, name)), heading) {
		return fmt.Sprintf("%s has no heading #%s", name, heading)
	}
	return ""
}

// headingAnchors returns the names by which links reach the headings of a page, as the forges make them.
func headingAnchors(lines []string) (anchors []string) {
	for _, line := range lines {
		title := strings.TrimLeft(line, "#")
		if level := len(line) - len(title); level == 0 || level > 6 || !strings.HasPrefix(title, " ") {
			continue
		}
		base := strings.Map(func(r rune) rune {
			switch {
			case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
				return unicode.ToLower(r)
			case r == ' ':
				return '-'
			default:
				return -1
			}
		}, strings.TrimSpace(title))
		anchor := base
		for n := 1; slices.Contains(anchors, anchor); n++ {
			anchor = fmt.Sprintf("%s-%d", base, n)
		}
		anchors = append(anchors, anchor)
	}
	return anchors
}

// TestDocLinks accepts no link in the comment of a declaration, such as [Name], [Type.Method] or [pkg.Name], that leads to a name that does not
// exist. A package of another module only has to be imported. Words in capitals, such as [DIR] in a usage line, are no links.
func TestDocLinks(t *testing.T) {
	names := map[string]map[string]bool{} // of the packages of the module, by import path
	for _, p := range packages(t) {
		names[path.Join(modulePath, p.name)] = declaredNames(p)
	}
	for _, p := range packages(t) {
		own := path.Join(modulePath, p.name)
		imports := importNames(p)
		for _, f := range p.code() {
			for _, group := range docComments(f) {
				for _, link := range findDocLinks(group.Text(), imports) {
					target := link.ImportPath
					if target == "" {
						target = own
					}
					name := strings.TrimPrefix(link.Recv+"."+link.Name, ".")
					switch known := names[target]; {
					case name == strings.ToUpper(name): // also a package without a name
					case target == unknownPackage:
						t.Errorf("%s:%d: the comment has the link [%s], whose package %s does not import: write the name without brackets", f.path, f.line(group), plainText(link), own)
					case known != nil && !known[name]:
						t.Errorf("%s:%d: the comment has the link [%s], but package %s has no %s: write the name that it has now", f.path, f.line(group), plainText(link), target, name)
					}
				}
			}
		}
	}
}

// unknownPackage is the import path of a link to a package that is not imported.
const unknownPackage = "?"

// importNames returns the import paths of a package by the names that its files use. Its own name has an empty path.
func importNames(p *goPackage) map[string]string {
	imports := map[string]string{}
	for _, f := range p.code() {
		imports[f.syntax.Name.Name] = ""
		for _, spec := range f.syntax.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if spec.Name != nil {
				imports[spec.Name.Name] = name
			} else {
				imports[path.Base(name)] = name
			}
		}
	}
	return imports
}

// findDocLinks returns the links of a comment.
func findDocLinks(text string, imports map[string]string) []*comment.DocLink {
	parser := comment.Parser{
		LookupPackage: func(name string) (string, bool) {
			if known, ok := imports[name]; ok {
				return known, true
			}
			if known, ok := comment.DefaultLookupPackage(name); ok {
				return known, true
			}
			return unknownPackage, true
		},
		LookupSym: func(string, string) bool { return true },
	}
	var links []*comment.DocLink
	var visitText func(text []comment.Text)
	visitText = func(text []comment.Text) {
		for _, part := range text {
			switch part := part.(type) {
			case *comment.DocLink:
				links = append(links, part)
			case *comment.Link:
				visitText(part.Text)
			}
		}
	}
	var visitBlocks func(blocks []comment.Block)
	visitBlocks = func(blocks []comment.Block) {
		for _, block := range blocks {
			switch block := block.(type) {
			case *comment.Paragraph:
				visitText(block.Text)
			case *comment.Heading:
				visitText(block.Text)
			case *comment.List:
				for _, item := range block.Items {
					visitBlocks(item.Content)
				}
			}
		}
	}
	visitBlocks(parser.Parse(text).Content)
	return links
}

func plainText(link *comment.DocLink) string {
	var b strings.Builder
	for _, part := range link.Text {
		switch part := part.(type) {
		case comment.Plain:
			b.WriteString(string(part))
		case comment.Italic:
			b.WriteString(string(part))
		}
	}
	return b.String()
}

// docComments returns the comments of a file's package, declarations and fields.
func docComments(f *goFile) []*ast.CommentGroup {
	var groups []*ast.CommentGroup
	add := func(all ...*ast.CommentGroup) {
		for _, group := range all {
			if group != nil {
				groups = append(groups, group)
			}
		}
	}
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.File:
			add(n.Doc)
		case *ast.FuncDecl:
			add(n.Doc)
		case *ast.GenDecl:
			add(n.Doc)
		case *ast.TypeSpec:
			add(n.Doc, n.Comment)
		case *ast.ValueSpec:
			add(n.Doc, n.Comment)
		case *ast.Field:
			add(n.Doc, n.Comment)
		}
		return true
	})
	return groups
}

// declaredNames returns the names that a package declares: its functions, types, variables and constants, and Type.Name for methods, fields and the
// methods of interfaces, with those of embedded types.
func declaredNames(p *goPackage) map[string]bool {
	names := map[string]bool{}
	embedded := map[string][]string{} // the embedded types by the name of the type
	for _, f := range p.code() {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[strings.TrimPrefix(receiverName(d)+"."+d.Name.Name, ".")] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					switch s := s.(type) {
					case *ast.ValueSpec:
						for _, name := range s.Names {
							names[name.Name] = true
						}
					case *ast.TypeSpec:
						names[s.Name.Name] = true
						for _, field := range memberFields(s.Type) {
							for _, name := range field.Names {
								names[s.Name.Name+"."+name.Name] = true
							}
							if name := typeName(field.Type); len(field.Names) == 0 && name != "" {
								names[s.Name.Name+"."+name] = true
								embedded[s.Name.Name] = append(embedded[s.Name.Name], name)
							}
						}
					}
				}
			}
		}
	}
	for changed := true; changed; { // until the names of embedded types have reached all types that embed them
		changed = false
		for outer, inner := range embedded {
			for _, inner := range inner {
				for name := range names {
					if member, ok := strings.CutPrefix(name, inner+"."); ok && !names[outer+"."+member] {
						names[outer+"."+member] = true
						changed = true
					}
				}
			}
		}
	}
	return names
}

// memberFields returns the fields of a struct or the methods of an interface.
func memberFields(e ast.Expr) []*ast.Field {
	switch e := e.(type) {
	case *ast.StructType:
		return e.Fields.List
	case *ast.InterfaceType:
		return e.Methods.List
	default:
		return nil
	}
}
