package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFindMutants(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string // changes
	}{
		{name: "a comparison", body: "return a < 2", want: []string{"a < 2 becomes <=", "a < 2 becomes a < 3"}},
		{name: "no limit below two for equality", body: "return a == 0", want: []string{"a == 0 becomes !="}},
		{name: "and, or", body: "return ok && (ok || a > b)", want: []string{"ok && (ok || a > b) becomes ||", "ok || a > b becomes &&", "a > b becomes >="}},
		{
			name: "a guard", body: "if ok { return false }; return ok",
			want: []string{"ok is negated", "the guard if ok is dropped"},
		},
		{name: "no guard", body: "if ok { f(1, 2, true) }; return ok", want: []string{"ok is negated", "the statement f(1, 2, true) is dropped"}},
		{name: "a case", body: "switch { case ok: return ok }; return ok", want: []string{"ok is negated"}},
		{
			name: "statements", body: "a++; b = a; c := b; _ = c; return ok",
			want: []string{"the statement a++ is dropped", "the statement b = a is dropped", "the statement _ = c is dropped"},
		},
		{name: "an addition", body: "b := a + 1; _ = s[1:b]", want: []string{
			"a + 1 becomes a", "the statement _ = s[1:b] is dropped", "the bound 1 of a slice is one more",
		}},
		{name: "no call is made twice", body: "b := g(a) + 1"},
		{name: "an error", body: "return err", want: []string{"err becomes nil in return err"}},
		{name: "several lines", body: "return ok &&\n\tok", want: []string{"ok && ok becomes ||"}},
		{name: "a comment within", body: "return a == f(a, // why\n\ta)"},
		{name: "a constant, which does not compile afterwards", body: "const c = 1 < 2", want: []string{"1 < 2 becomes 1 < 3", "1 < 2 becomes <="}},
	} {
		t.Run(c.name, func(t *testing.T) {
			found, err := findMutants("p.go", []byte("package p\nfunc (x *T[K]) f() {\n"+c.body+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				got = append(got, m.change)
				if m.function != "T.f" || m.line < 3 || m.file != "p.go" {
					t.Errorf("%+v is not in T.f", m)
				}
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

func TestChoose(t *testing.T) {
	var all []*mutant
	for i := range 50 {
		all = append(all, &mutant{file: []string{"a.go", "b.go"}[i/25], start: i, end: i + 1})
	}
	list := func(s selection) string {
		var b strings.Builder
		for i, m := range s.choose(all) {
			if m.number != i+1 {
				t.Errorf("number %d at %d", m.number, i)
			}
			b.WriteString(m.file + string(rune('A'+m.start)))
		}
		return b.String()
	}
	one := list(selection{count: 5, seed: 1})
	if again := list(selection{count: 5, seed: 1}); again != one {
		t.Errorf("the same seed chose %s and %s", one, again)
	}
	if other := list(selection{count: 5, seed: 2}); other == one {
		t.Errorf("another seed chose the same: %s", one)
	}
	if got := len((selection{files: []string{"b.go"}}).choose(all)); got != 25 {
		t.Errorf("%d of b.go", got)
	}
}

// TestScores runs the tool with a package whose tests notice some changes.
func TestScores(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.test/p\n\ngo 1.26\n")
	write("p.go", `package p

const limit = 2

func Guarded(n int) bool { return n < limit }

func Loose(n int) bool { return n > 5 }

func Waits(n int) {
	for n > 0 {
		n--
	}
}

func Unreached(ok *bool) { *ok = true }

var array [len("ab") - 1]int
`)
	write("p_test.go", `package p

import "testing"

func TestP(t *testing.T) {
	if !Guarded(1) || Guarded(2) || !Loose(9) {
		t.Fail()
	}
	Waits(3)
}
`)
	p := &goPackage{Dir: dir, ImportPath: "example.test/p", Name: "p", GoFiles: []string{"p.go"}, texts: map[string][]byte{}}
	all, err := p.listMutants()
	if err != nil {
		t.Fatal(err)
	}
	program, err := p.compile(t.Context(), selection{}.choose(all))
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(program.dir)
	program.grace = 100e6
	if err := program.findReached(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]fate{
		"Guarded: n < limit becomes <=":                  killed,
		"Loose: n > 5 becomes >=":                        survived,
		"Loose: n > 5 becomes n > 6":                     survived,
		"Waits: n > 0 becomes >=":                        survived,
		"Waits: n > 0 becomes n > 1":                     survived,
		"Waits: the statement n-- is dropped":            timeout,
		"Unreached: the statement *ok = true is dropped": unreached,
	}
	for _, m := range program.mutants {
		got, err := program.try(t.Context(), m)
		if err != nil || got != want[m.String()] {
			t.Errorf("%s %s, %v; want %q", got, m, err, want[m.String()])
		}
		delete(want, m.String())
	}
	if len(want) > 0 {
		t.Errorf("not made: %v", want)
	}
}

func TestPercentage(t *testing.T) {
	s := score{counts: map[fate]int{killed: 8, timeout: 1, survived: 2, unreached: 1, equivalent: 4}}
	if got := s.percentage(); got != 75 {
		t.Errorf("percentage = %v", got)
	}
	if got := (score{}).percentage(); got != 100 {
		t.Errorf("percentage of nothing = %v", got)
	}
}

func TestParseEquivalent(t *testing.T) {
	got := parseEquivalent("# a comment\n\na.go f: x < 1 becomes <=  x is never 1\n")
	if len(got) != 1 || !got["a.go f: x < 1 becomes <="] {
		t.Errorf("got %v", got)
	}
}
