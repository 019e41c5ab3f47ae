package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// A mutant is one small change of a package.
type mutant struct {
	number     int    // names it in the test program
	file       string // without its directory
	line       int
	function   string // around the change; empty: a declaration of a variable
	change     string // what is done, for people
	start, end int    // offsets in the file of what is changed
	wrap       func(number int, inner string) string
	reached    []string // tests
}

func (m *mutant) String() string { return m.function + ": " + m.change }

// key names the change also after lines were added elsewhere in its file.
func (m *mutant) key() string { return m.file + " " + m.String() }

func compareMutants(a, b *mutant) int {
	return cmp.Or(strings.Compare(a.file, b.file), cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), strings.Compare(a.change, b.change))
}

// comparisons are the operators that compare, with what a change makes of them.
var comparisons = map[token.Token]token.Token{
	token.EQL:  token.NEQ,
	token.NEQ:  token.EQL,
	token.LSS:  token.LEQ,
	token.LEQ:  token.LSS,
	token.GTR:  token.GEQ,
	token.GEQ:  token.GTR,
	token.LAND: token.LOR,
	token.LOR:  token.LAND,
}

// listMutants returns all changes of the package, in the order of its sources.
func (p *goPackage) listMutants() ([]*mutant, error) {
	var all []*mutant
	for _, name := range p.GoFiles {
		text, err := os.ReadFile(filepath.Join(p.Dir, name))
		if err != nil {
			return nil, err
		}
		found, err := findMutants(name, text)
		if err != nil {
			return nil, err
		}
		p.texts[name] = text
		all = append(all, found...)
	}
	return all, nil
}

// findMutants returns the changes of one file, in the order of its text.
func findMutants(name string, text []byte) ([]*mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := finder{file: files.File(file.Pos()), name: name, text: string(text)}
	for _, d := range file.Decls {
		f.function = ""
		switch d := d.(type) {
		case *ast.FuncDecl:
			f.function = nameFunction(d)
			ast.Inspect(d, f.visit)
		case *ast.GenDecl:
			if d.Tok == token.VAR {
				ast.Inspect(d, f.visit)
			}
		}
	}
	slices.SortStableFunc(f.found, compareMutants)
	return f.found, nil
}

// nameFunction returns the name of a function, with its receiver's type.
func nameFunction(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if name, ok := receiver.(*ast.Ident); ok {
		return name.Name + "." + d.Name.Name
	}
	return d.Name.Name
}

// A finder collects the changes of one file.
type finder struct {
	file     *token.File
	name     string
	text     string
	function string
	found    []*mutant
}

// add notes a change of a node. What spans several lines is changed only if it can be written on one.
func (f *finder) add(n ast.Node, change string, wrap func(number int, inner string) string) {
	f.found = append(f.found, &mutant{
		file:     f.name,
		line:     f.file.Line(n.Pos()),
		function: f.function,
		change:   change,
		start:    f.file.Offset(n.Pos()),
		end:      f.file.Offset(n.End()),
		wrap:     wrap,
	})
}

// source returns the text of a node on one line, and whether it can be written so.
func (f *finder) source(n ast.Node) (text string, ok bool) {
	text = f.text[f.file.Offset(n.Pos()):f.file.Offset(n.End())]
	if !strings.Contains(text, "\n") {
		return text, true
	}
	return strings.Join(strings.Fields(text), " "), !strings.ContainsAny(text, "`") && !strings.Contains(text, "//")
}

func (f *finder) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		f.changeOperator(n)
		f.moveLimit(n)
	case *ast.IfStmt:
		f.negate(n.Cond)
		f.dropGuard(n)
	case *ast.SwitchStmt:
		if n.Tag == nil {
			f.negateCases(n.Body)
		}
	case *ast.BlockStmt:
		f.dropStatements(n.List)
	case *ast.CaseClause:
		f.dropStatements(n.Body)
	case *ast.CommClause:
		f.dropStatements(n.Body)
	case *ast.SliceExpr:
		f.moveBound(n.Low)
		f.moveBound(n.High)
	case *ast.ReturnStmt:
		f.dropError(n)
	}
	return true
}

// instead returns a change of an expression with the value true or false.
func instead(changed string) func(int, string) string {
	return func(number int, inner string) string {
		return fmt.Sprintf("func() bool { if mutantOn(%d) { return %s }; return %s }()", number, changed, inner)
	}
}

// changeOperator turns a comparison into its neighbour, and "and" into "or".
func (f *finder) changeOperator(n *ast.BinaryExpr) {
	other, ok := comparisons[n.Op]
	left, leftOK := f.source(n.X)
	right, rightOK := f.source(n.Y)
	if ok && leftOK && rightOK {
		f.add(n, fmt.Sprintf("%s %s %s becomes %s", left, n.Op, right, other), instead(left+" "+other.String()+" "+right))
	}
}

// moveLimit moves a whole number with which something is compared, or which is added, by one. The numbers 0 and 1 are left to the other changes of a
// comparison with == or !=, which they equal for lengths.
func (f *finder) moveLimit(n *ast.BinaryExpr) {
	literal, ok := n.Y.(*ast.BasicLit)
	if !ok || literal.Kind != token.INT {
		return
	}
	number, err := strconv.Atoi(literal.Value)
	left, leftOK := f.source(n.X)
	if err != nil || !leftOK {
		return
	}
	_, compares := comparisons[n.Op]
	moved := fmt.Sprintf("%s %s %d", left, n.Op, number+1)
	switch {
	case compares && (number > 1 || n.Op != token.EQL && n.Op != token.NEQ):
		f.add(n, fmt.Sprintf("%s %s %d becomes %s", left, n.Op, number, moved), instead(moved))
	case (n.Op == token.ADD || n.Op == token.SUB) && !strings.Contains(left, "("):
		f.add(n, fmt.Sprintf("%s %s %d becomes %s", left, n.Op, number, left), func(at int, inner string) string {
			return fmt.Sprintf("mutantPick(%d, %s, %s)", at, inner, left)
		})
	}
}

// negate turns a condition round, unless its operator can be.
func (f *finder) negate(condition ast.Expr) {
	if n, ok := condition.(*ast.BinaryExpr); ok && (n.Op == token.EQL || n.Op == token.NEQ) {
		return
	}
	if text, ok := f.source(condition); ok {
		f.add(condition, text+" is negated", func(number int, inner string) string {
			return fmt.Sprintf("mutantOn(%d) != (%s)", number, inner)
		})
	}
}

func (f *finder) negateCases(body *ast.BlockStmt) {
	for _, s := range body.List {
		for _, condition := range s.(*ast.CaseClause).List {
			f.negate(condition)
		}
	}
}

// dropGuard removes what leaves a function or a loop early.
func (f *finder) dropGuard(n *ast.IfStmt) {
	if n.Else != nil || len(n.Body.List) == 0 || !leaves(n.Body.List[len(n.Body.List)-1]) {
		return
	}
	if text, ok := f.source(n.Cond); ok {
		f.add(n.Cond, "the guard if "+text+" is dropped", func(number int, inner string) string {
			return fmt.Sprintf("(%s) && !mutantOn(%d)", inner, number)
		})
	}
}

func leaves(s ast.Stmt) bool {
	switch s.(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// dropStatements removes calls, counting and assignments to variables that exist.
func (f *finder) dropStatements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if _, ok := s.X.(*ast.CallExpr); !ok {
				continue
			}
		case *ast.IncDecStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		default:
			continue
		}
		text, _ := f.source(s)
		f.add(s, "the statement "+shorten(text)+" is dropped", func(number int, inner string) string {
			return fmt.Sprintf("if !mutantOn(%d) { %s }", number, inner)
		})
	}
}

// moveBound moves a bound of a slice by one, if it is a number.
func (f *finder) moveBound(bound ast.Expr) {
	literal, ok := bound.(*ast.BasicLit)
	if !ok || literal.Kind != token.INT {
		return
	}
	f.add(bound, "the bound "+literal.Value+" of a slice is one more", func(number int, inner string) string {
		return fmt.Sprintf("mutantPick(%d, %s, %s+1)", number, inner, inner)
	})
}

// dropError returns nil in place of an error.
func (f *finder) dropError(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	last, ok := n.Results[len(n.Results)-1].(*ast.Ident)
	if ok && last.Name == "err" {
		f.add(last, "err becomes nil in "+f.text[f.file.Offset(n.Pos()):f.file.Offset(n.End())], func(number int, inner string) string {
			return fmt.Sprintf("mutantPick(%d, %s, nil)", number, inner)
		})
	}
}

// shorten returns a text with 100 bytes at most.
func shorten(text string) string {
	if len(text) > 100 {
		return text[:97] + "..."
	}
	return text
}

// rewrite returns the text of a file with all its changes in it. They are nested as their places are, and keep the lines.
func rewrite(text string, mutants []*mutant) string {
	sorted := slices.SortedStableFunc(slices.Values(mutants), func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end))
	})
	return rewriteSpan(text, 0, len(text), sorted)
}

// rewriteSpan rewrites a part of a text with the changes in it, which are sorted.
func rewriteSpan(text string, start, end int, mutants []*mutant) string {
	var b strings.Builder
	for len(mutants) > 0 {
		m := mutants[0]
		b.WriteString(text[start:m.start])
		within := 1
		for within < len(mutants) && mutants[within].start < m.end {
			within++
		}
		b.WriteString(m.wrap(m.number, rewriteSpan(text, m.start, m.end, mutants[1:within])))
		start, mutants = m.end, mutants[within:]
	}
	return b.String() + text[start:end]
}
