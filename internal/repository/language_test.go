package repository_test

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// These limits describe the house style, measured over the code of the module, without tests and generated files. They only ever become smaller.
const (
	maxOneWordShare  = 16.0 // percent of the names of functions and methods
	maxDialectPer10k = 2.0  // matches of dialectPatterns in 10,000 words of comments
	maxParticiples   = 0
	maxPackageLines  = 8000 // of code, without comments and blank lines
	lookPackageLines = 6000
)

// dialectPatterns match phrases that this project once used and that plain English has a word for. A match that begins with "there" does not count.
var dialectPatterns = []*regexp.Regexp{
	regexp.MustCompile(`(?i)\b(nobody|somebody|anybody|everybody|whoever|whomever)\b`),
	regexp.MustCompile(`(?i)\btells? (whether|that|of|what|how|if|which|where|when|apart)\b`),
	regexp.MustCompile(`(?i)\b(anew|begun|besides?)\b`),
	regexp.MustCompile(`(?i)\b((is|are|was|were|be|been|being|unless) told|told apart)\b`),
	regexp.MustCompile(`(?i)\b(for good|at work|under way|of no use|at fault|no fault|in vain)\b`),
	regexp.MustCompile(`(?i)\bstands? (for|behind|where|in|still)\b`),
	regexp.MustCompile(`(?i)(^|[.;:] )who (wants|holds|has|is|does|asks|waits|reads|writes|calls|gives|needs)\b`),
	regexp.MustCompile(`(?i)\b(there )?(is|are) no (address|base64|directory|file|function|integer|JSON|letter|list|message|name|number|object|pattern|program|regular|string|table|text|time|token|value)\b`),
	regexp.MustCompile(`(?i)\b(goes|went|going|go) on\b`),
	regexp.MustCompile(`(?i)\bwhat (becomes|became|has become|comes|came|has come) of\b`),
	regexp.MustCompile(`(?i)\b((and|or) (its|their) like|one another)\b`),
	regexp.MustCompile(`(?i)\b(heed(s|ed|ing)?|speaks? of)\b`),
	regexp.MustCompile(`(?i)\bthat (is|are|was|were) no more\b`),
	regexp.MustCompile(`(?i)\b(in|takes?|took) the place of\b`),
	regexp.MustCompile(`(?i)\bwhere there (is|are) (no|none|nothing)\b`),
	regexp.MustCompile(`(?i)\b(cut|sums?|summed) up\b`),
}

// dialectLiterals are string literals that dialectPatterns may match, because stored data has these names.
var dialectLiterals = []string{`"begun"`, "`json:\"begun,omitempty\"`"}

// findDialect returns the matches of dialectPatterns in a text.
func findDialect(text string) []string {
	text = strings.Join(strings.Fields(text), " ") // a phrase may be on two lines
	var found []string
	for _, pattern := range dialectPatterns {
		for _, match := range pattern.FindAllString(text, -1) {
			if !strings.HasPrefix(strings.ToLower(match), "there") {
				found = append(found, match)
			}
		}
	}
	return found
}

// bareParticiples are names of one word that name a state instead of an action. Those that end in "ed" are found by their ending.
var bareParticiples = []string{
	"told", "led", "begun", "made", "held", "kept", "gone", "given", "taken", "seen", "known", "shown", "drawn", "written", "bound", "spent", "sent",
	"lost", "found", "built", "meant", "left", "hidden", "chosen", "frozen", "sought", "bought", "caught", "brought", "thought", "lent", "bent", "won", "worn",
}

// participleReasons maps the functions that are named by a bare participle to the reason.
var participleReasons = map[string]string{
	"internal/terminal/console/log.Enabled": "log/slog calls it by this name",
}

// A languageCount holds the counts for one package, or for all.
type languageCount struct {
	functions, oneWord int
	participles        []string
	words, dialect     int
	lines, codeLines   int
}

func (c *languageCount) add(d languageCount) {
	c.functions += d.functions
	c.oneWord += d.oneWord
	c.participles = append(c.participles, d.participles...)
	c.words += d.words
	c.dialect += d.dialect
	c.lines += d.lines
	c.codeLines += d.codeLines
}

func (c *languageCount) oneWordShare() float64 {
	return 100 * float64(c.oneWord) / float64(max(c.functions, 1))
}

func (c *languageCount) dialectPer10k() float64 {
	return 10000 * float64(c.dialect) / float64(max(c.words, 1))
}

func TestLanguage(t *testing.T) {
	var total languageCount
	for _, p := range packages(t) {
		var count languageCount
		for _, f := range p.code() {
			if !ast.IsGenerated(f.syntax) {
				count.add(countLanguage(t, f))
			}
		}
		t.Logf("%-28s %5d lines %4d functions %3.0f %% of one word %5.1f dialect per 10,000 words", p.name, count.lines, count.functions, count.oneWordShare(), count.dialectPer10k())
		total.add(count)
	}
	t.Logf("in all: %d lines (%d of code), %d functions, %.1f %% of one word, %d participles, %.1f dialect per 10,000 of %d words",
		total.lines, total.codeLines, total.functions, total.oneWordShare(), len(total.participles), total.dialectPer10k(), total.words)
	if share := total.oneWordShare(); share > maxOneWordShare {
		t.Errorf("%.1f %% of the functions are named by one word, the limit is %.1f: name them by verb and object", share, maxOneWordShare)
	}
	if share := total.dialectPer10k(); share > maxDialectPer10k {
		t.Errorf("%.1f dialect words in 10,000 words of comments, the limit is %.1f: write plain English (go test -v -run TestDialect lists them)", share, maxDialectPer10k)
	}
	unexplained := slices.DeleteFunc(total.participles, func(name string) bool { return participleReasons[name] != "" })
	for _, name := range unexplained {
		t.Logf("%s is named by a bare participle: name it by verb and object, or give the reason in participleReasons", name)
	}
	if n := len(unexplained); n > maxParticiples {
		t.Errorf("%d functions are named by a bare participle, the limit is %d (go test -v lists them)", n, maxParticiples)
	}
}

// TestDialect lists the dialect in comments, which TestLanguage limits, and accepts none in string literals.
func TestDialect(t *testing.T) {
	for _, p := range packages(t) {
		for _, f := range p.code() {
			for _, group := range f.syntax.Comments {
				for _, match := range findDialect(group.Text()) {
					t.Logf("%s:%d: the comment says %q", f.path, f.line(group), match)
				}
			}
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && !slices.Contains(dialectLiterals, lit.Value) {
					for _, match := range findDialect(lit.Value) {
						t.Errorf("%s:%d: the text says %q: rewrite its sentence in plain English, with the words of the glossary in ARCHITECTURE.md", f.path, f.line(lit), match)
					}
				}
				return true
			})
		}
	}
}

// TestDialectOfDocuments accepts no dialect in documents, except in blocks of code.
func TestDialectOfDocuments(t *testing.T) {
	code := regexp.MustCompile("(?s)\n```.*?\n```")
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/guide/*.md", "bench/*.md", "internal/base/schema/*.json"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			t.Fatalf("%s: no document (%v)", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for paragraph := range strings.SplitSeq(code.ReplaceAllString(string(text), "\n"), "\n\n") {
				for _, match := range findDialect(paragraph) {
					first, _, _ := strings.Cut(strings.TrimSpace(paragraph), "\n")
					t.Errorf("%s: the paragraph %.60q says %q: rewrite its sentence in plain English, in active voice, with \"you\" and \"raddle\"", name, first, match)
				}
			}
		}
	}
}

// TestDialectOfTests limits the dialect in comments of tests and of the scripts that they run, as TestLanguage does for the code.
func TestDialectOfTests(t *testing.T) {
	var count languageCount
	add := func(place, text string) {
		found := findDialect(text)
		for _, match := range found {
			t.Logf("%s: the comment says %q", place, match)
		}
		count.add(languageCount{words: len(strings.Fields(text)), dialect: len(found)})
	}
	for _, p := range everything(t) {
		for _, f := range p.files {
			for _, group := range f.syntax.Comments {
				if text := group.Text(); f.test && !strings.HasPrefix(text, "Output:") {
					add(fmt.Sprintf("%s:%d", f.path, f.line(group)), text)
				}
			}
		}
	}
	err := walk(func(name string) error {
		if filepath.Ext(name) != ".txtar" {
			return nil
		}
		text, err := os.ReadFile(name)
		script, _, _ := strings.Cut(string(text), "\n-- ")
		for line := range strings.Lines(script) {
			if comment, ok := strings.CutPrefix(line, "#"); ok {
				add(name, comment)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.1f dialect per 10,000 of %d words", count.dialectPer10k(), count.words)
	if share := count.dialectPer10k(); share > maxDialectPer10k {
		t.Errorf("%.1f dialect words in 10,000 words of the comments of tests, the limit is %.1f: write plain English (go test -v -run TestDialectOfTests lists them)", share, maxDialectPer10k)
	}
}

// TestPackageSizes limits the lines of code of a package.
func TestPackageSizes(t *testing.T) {
	for _, p := range packages(t) {
		lines := 0
		for _, f := range p.code() {
			if !ast.IsGenerated(f.syntax) {
				lines += countCodeLines(t, f.path)
			}
		}
		switch {
		case lines > maxPackageLines:
			t.Errorf("package %s has %d lines of code, the limit is %d: split it", p.name, lines, maxPackageLines)
		case lines > lookPackageLines:
			t.Logf("package %s has %d lines of code, check whether it needs more than %d", p.name, lines, lookPackageLines)
		}
	}
}

// receiverName returns the name of the type that a method belongs to, or "" for a function.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return ""
	}
	return typeName(d.Recv.List[0].Type)
}

// typeName returns the name of a type without its pointer and parameters, or "" if it has none in this package.
func typeName(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.StarExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.IndexListExpr:
			e = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}

func countLanguage(t *testing.T, f *goFile) languageCount {
	t.Helper()
	count := languageCount{lines: f.lines, codeLines: countCodeLines(t, f.path)}
	for _, d := range f.syntax.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.Name == "_" {
			continue
		}
		count.functions++
		if isOneWord(fn.Name.Name) {
			count.oneWord++
		}
		if isBareParticiple(fn.Name.Name) {
			count.participles = append(count.participles, strings.TrimSuffix(f.path, ".go")+"."+fn.Name.Name)
		}
	}
	for _, group := range f.syntax.Comments {
		text := group.Text()
		count.words += len(strings.Fields(text))
		count.dialect += len(findDialect(text))
	}
	return count
}

// isOneWord reports whether a name has no second word: no capital letter after a small one.
func isOneWord(name string) bool {
	runes := []rune(name)
	for i := 1; i < len(runes); i++ {
		if runes[i] == '_' || unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsUpper(runes[i-1]) && unicode.IsUpper(runes[i]) && unicode.IsLower(runes[i+1]) {
			return false
		}
	}
	return true
}

func isBareParticiple(name string) bool {
	if !isOneWord(name) {
		return false
	}
	name = strings.ToLower(name)
	if slices.Contains(bareParticiples, name) {
		return true
	}
	return len(name) > 4 && strings.HasSuffix(name, "ed") && !slices.Contains([]string{"embed", "need", "seed", "feed", "speed", "exceed", "proceed", "shed"}, name)
}

// countCodeLines counts the lines that are neither blank nor only a comment.
func countCodeLines(t *testing.T, name string) int {
	t.Helper()
	src, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var s scanner.Scanner
	fset := token.NewFileSet()
	file := fset.AddFile(name, -1, len(src))
	s.Init(file, src, nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := file.Line(pos)
		for l := first; l <= first+strings.Count(lit, "\n"); l++ {
			lines[l] = true
		}
	}
}
