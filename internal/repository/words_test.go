package repository_test

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// A forbiddenWord is text that no committed file may contain.
type forbiddenWord struct {
	pattern *regexp.Regexp
	instead string
}

// The patterns are written so that this file does not match them.
var forbiddenWords = []forbiddenWord{
	{regexp.MustCompile(`TODO[:]? implement`), "implement it, or leave it out and say so in docs/rough_edges.md"},
	{regexp.MustCompile(`(?m)(^|[^\w./$}~-])/(work|root)/`), "this is a path of one machine: make it relative, or take it from the environment"},
	{regexp.MustCompile(`context[.]TODO\(`), "pass the caller's context"},
}

func TestForbiddenWords(t *testing.T) {
	err := walk(func(name string) error {
		text, err := os.ReadFile(name)
		if err != nil || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) {
			return err // not text
		}
		for _, w := range forbiddenWords {
			for _, at := range w.pattern.FindAllIndex(text, -1) {
				line := 1 + bytes.Count(text[:at[1]], []byte("\n"))
				t.Errorf("%s:%d: %q: %s", name, line, strings.TrimSpace(string(text[at[0]:at[1]])), w.instead)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestSkipsGiveAReason ensures that a skipped test says what is missing.
func TestSkipsGiveAReason(t *testing.T) {
	for _, p := range everything(t) {
		for _, f := range p.files {
			if !f.test {
				continue
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if name := skips(call); name != "" {
					t.Errorf("%s:%d: %s without a reason: say what is missing on this machine, as in t.Skip(\"no python3\")", f.path, f.line(call), name)
				}
				return true
			})
		}
	}
}

// skips returns the name of the method by which a call skips a test without a reason, or "".
func skips(call *ast.CallExpr) string {
	method, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return ""
	}
	switch name := method.Sel.Name; name {
	case "SkipNow":
		return name
	case "Skip", "Skipf":
		if len(call.Args) == 0 || isEmptyText(call.Args[0]) {
			return name
		}
	}
	return ""
}

func isEmptyText(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	return ok && lit.Kind == token.STRING && strings.TrimSpace(strings.Trim(lit.Value, "\"`")) == ""
}
