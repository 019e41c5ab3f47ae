package repository_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestNumbers shows numbers that say how well ideas are kept apart, with what they should not exceed: make numbers. None of them is a limit. Who lets one
// grow says why in the commit, and changes no code only for the sake of a number.
func TestNumbers(t *testing.T) {
	code, tests := 0, 0
	for _, p := range everything(t) {
		for _, f := range p.files {
			switch {
			case ast.IsGenerated(f.syntax):
			case f.test:
				tests += f.lines
			default:
				code += countCodeLines(t, f.path)
			}
		}
	}
	t.Logf("%d lines of code, %d lines of tests", code, tests)
	showLargest(t, "arrows between files of a package that run against the others", countArrowsUp(t), 60)
	showLargest(t, "functions and methods of one type", countBehaviour(t), 60)
	shared := countTypeNames(t)
	t.Logf("%d names of types in three or more packages (aim: at most 25): %s", len(shared), strings.Join(slices.Sorted(maps.Keys(shared)), " "))
	assignments, long, lines := countLines(t)
	t.Logf("%.1f assignments of several values in 1,000 lines of code (aim: at most 2)", 1000*float64(assignments)/float64(code))
	t.Logf("%.1f %% of the lines of code are longer than 120 columns (aim: at most 0.5)", 100*float64(long)/float64(lines))
}

// showLargest shows the sum of counts, and the largest ones.
func showLargest(t *testing.T, what string, counts map[string]int, aim int) {
	t.Helper()
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(counts[b]-counts[a], strings.Compare(a, b)) })
	var largest []string
	above := 0
	for i, name := range names {
		if counts[name] > aim {
			above++
		}
		if i < 6 {
			largest = append(largest, fmt.Sprintf("%s %d", name, counts[name]))
		}
	}
	t.Logf("%s: %d with more than %d; %s", what, above, aim, strings.Join(largest, ", "))
}

// countArrowsUp returns for each package how many uses of one file by another run against the order of its files in which the fewest do, as far as a simple
// search finds it.
func countArrowsUp(t *testing.T) map[string]int {
	counts := map[string]int{}
	for _, p := range packages(t) {
		uses := usesOfFiles(p)
		order := map[*goFile]int{}
		for i, f := range orderFiles(p.code(), uses) {
			order[f] = i
		}
		for from, others := range uses {
			for to := range others {
				if order[to] < order[from] {
					counts[p.name]++
				}
			}
		}
	}
	return counts
}

// usesOfFiles returns which files of a package use names that others declare. A method counts if its name is that of no other.
func usesOfFiles(p *goPackage) map[*goFile]map[*goFile]bool {
	declared, methods := map[string]*goFile{}, map[string][]*goFile{}
	for _, f := range p.code() {
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					declared[d.Name.Name] = f
				} else {
					methods[d.Name.Name] = append(methods[d.Name.Name], f)
				}
			case *ast.GenDecl:
				for _, name := range namesOf(d) {
					declared[name] = f
				}
			}
		}
	}
	uses := map[*goFile]map[*goFile]bool{}
	for _, f := range p.code() {
		uses[f] = map[*goFile]bool{}
		note := func(to *goFile) {
			if to != nil && to != f {
				uses[f][to] = true
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.SelectorExpr:
				if in := methods[n.Sel.Name]; len(in) == 1 {
					note(in[0])
				}
				ast.Inspect(n.X, func(n ast.Node) bool {
					if id, ok := n.(*ast.Ident); ok {
						note(declared[id.Name])
					}
					return true
				})
				return false
			case *ast.Ident:
				note(declared[n.Name])
			}
			return true
		})
	}
	return uses
}

// namesOf returns the names of types, variables and constants of a declaration.
func namesOf(d *ast.GenDecl) (names []string) {
	for _, s := range d.Specs {
		switch s := s.(type) {
		case *ast.TypeSpec:
			names = append(names, s.Name.Name)
		case *ast.ValueSpec:
			for _, id := range s.Names {
				names = append(names, id.Name)
			}
		}
	}
	return names
}

// orderFiles orders files so that few uses run from a later file to an earlier one. It begins with those that use much and are used little, and then moves
// single files as long as that leaves fewer such uses.
func orderFiles(files []*goFile, uses map[*goFile]map[*goFile]bool) (order []*goFile) {
	left := slices.Clone(files)
	for len(left) > 0 {
		best, most := 0, -len(files)
		for i, f := range left {
			balance := 0
			for _, other := range left {
				if uses[f][other] {
					balance++
				}
				if uses[other][f] {
					balance--
				}
			}
			if balance > most {
				best, most = i, balance
			}
		}
		order = append(order, left[best])
		left = slices.Delete(left, best, best+1)
	}
	for moved := true; moved; {
		moved = false
		for i := range order {
			if to := bestPlace(order, i, uses); to != i {
				f := order[i]
				order = slices.Insert(slices.Delete(order, i, i+1), to, f)
				moved = true
			}
		}
	}
	return order
}

// bestPlace returns where the file at i must stand so that the fewest uses of it and by it run back, all others staying as they are.
func bestPlace(order []*goFile, i int, uses map[*goFile]map[*goFile]bool) (place int) {
	place = i
	most := 0
	f := order[i]
	for _, step := range []int{-1, 1} {
		gain := 0
		for at := i + step; at >= 0 && at < len(order); at += step {
			if uses[f][order[at]] {
				gain -= step
			}
			if uses[order[at]][f] {
				gain += step
			}
			if gain > most {
				most = gain
				place = at
			}
		}
	}
	return place
}

// countBehaviour returns for each type how many methods it has, and how many functions take it as one of their first two parameters.
func countBehaviour(t *testing.T) map[string]int {
	counts := map[string]int{}
	for _, p := range packages(t) {
		own := map[string]bool{}
		for _, f := range p.code() {
			for _, d := range f.syntax.Decls {
				if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
					for _, name := range namesOf(d) {
						own[name] = true
					}
				}
			}
		}
		for _, f := range p.code() {
			for _, d := range f.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if name := receiverName(fn); name != "" {
					counts[p.name+"."+name]++
					continue
				}
				for i, param := range fn.Type.Params.List {
					if name := typeName(param.Type); i < 2 && own[name] {
						counts[p.name+"."+name]++
						break
					}
				}
			}
		}
	}
	return counts
}

// countTypeNames returns the names of types that three or more packages declare, with their number.
func countTypeNames(t *testing.T) map[string]int {
	counts := map[string]int{}
	for _, p := range packages(t) {
		names := map[string]bool{}
		for _, f := range p.code() {
			for _, d := range f.syntax.Decls {
				if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.TYPE {
					for _, name := range namesOf(d) {
						names[name] = true
					}
				}
			}
		}
		for name := range names {
			counts[name]++
		}
	}
	maps.DeleteFunc(counts, func(name string, n int) bool { return n < 3 || name == "main" })
	return counts
}

// countLines returns how many assignments give several values of their own, and how many of the lines are longer than 120 columns, a tab being four.
func countLines(t *testing.T) (assignments, long, lines int) {
	for _, p := range packages(t) {
		for _, f := range p.code() {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if a, ok := n.(*ast.AssignStmt); ok && len(a.Rhs) > 1 {
					assignments++
				}
				return true
			})
			text, err := os.ReadFile(f.path)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(text)) {
				lines++
				if utf8.RuneCountInString(strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")) > 120 {
					long++
				}
			}
		}
	}
	return assignments, long, lines
}
