package spec

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"raddle.dev/internal/base/jsonvalue"
)

// state parses a JSON object and gives its lookup.
func state(t testing.TB, text string) func(string) (any, bool) {
	t.Helper()
	v, err := jsonvalue.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v.(*jsonvalue.Object).Get
}

func TestTemplatePaths(t *testing.T) {
	lookup := state(t, `{"a":{"b":[10,[11,12],{"c":"deep"}],"0":"zero"},"list":["x","y"],"n":null,"s":"text","a]":1,"":"empty","x[0]":2,"_K9":true}`)
	for text, want := range map[string]string{
		"{{a.b[0]}}": "10", "{{a.b[1][1]}}": "12", "{{a.b[2].c}}": "deep", "{{a..b[0]}}": "10", "{{a.b.[0]}}": "10",
		"{{list.}}": `["x","y"]`, "{{list.[1]}}": "y", "{{list[01]}}": "y", "{{a.0}}": "zero", "{{n}}": "null", "{{_K9}}": "true",
		"{{s}}{{s}}": "texttext", "{{a.b[1].}}": "[11,12]", "{{s}} {{ s }}": "text {{ s }}", "{{{{s}}": "{{text", "{{s}}}": "text}",
	} {
		got, err := ParseTemplate(text).Render(lookup)
		if err != nil || got != want {
			t.Errorf("%s gives %q, %v, want %q", text, got, err, want)
		}
	}
	for _, path := range []string{
		"missing", "a.missing", "a.b.c", "s.x", "s[0]", "n.x", "n[0]", "list[2]", "list.0", "list[]", "list[x]", "list[0", "list0]", "list[0]x",
		"list[0]]", "list[[0]]", ".a", "[0]", ".", "[", "]", "a]", "x[0]", "a[b.c]", "list[99999999999999999999]", "list[1_0]", "A",
	} {
		text := "{{" + path + "}}"
		_, err := ParseTemplate(text).Render(lookup)
		want := "Template interpolation failed: '" + path + "' not found in state"
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
		if got := ParseTemplate("<" + text + ">").RenderLenient(lookup); got != "<>" {
			t.Errorf("%s renders as %s", text, got)
		}
	}
}

func TestTemplateErrorListsAll(t *testing.T) {
	_, err := ParseTemplate("{{x}} {{s}} {{y.z}} {{x}}").Render(state(t, `{"s":1}`))
	var missing *MissingError
	if !errors.As(err, &missing) {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"x", "y.z", "x"}, missing.Paths); diff != "" {
		t.Error(diff)
	}
	if want := "Template interpolation failed: 'x', 'y.z', 'x' not found in state"; err.Error() != want {
		t.Error(err)
	}
}

func TestTemplateEval(t *testing.T) {
	lookup := state(t, `{"items":[1,{"k":2.0}],"n":null,"s":"x"}`)
	for text, want := range map[string]string{
		"{{items}}": `[1,{"k":2.0}]`, " \n{{items[1]}}\t": `{"k":2.0}`, "{{n}}": "null", "{{s}}": `"x"`, "{{s}}{{s}}": `"xx"`, " a {{s}} ": `"a x"`, "": `""`, "plain": `"plain"`,
		"{{items}}}": `"[1,{\"k\":2.0}]}"`,
	} {
		got, err := ParseTemplate(text).Eval(lookup)
		if err != nil || jsonvalue.Compact(got) != want {
			t.Errorf("%q gives %s, %v, want %s", text, jsonvalue.Compact(got), err, want)
		}
	}
	for _, text := range []string{"{{x}}", " {{x}} y"} {
		if _, err := ParseTemplate(text).Eval(lookup); err == nil || err.Error() != "Template interpolation failed: 'x' not found in state" {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTemplateLists(t *testing.T) {
	tmpl := ParseTemplate("{{a.b}} {{c}} {{a[0]}} {{.x}} {{ d }}")
	if diff := cmp.Diff([]string{"a.b", "c", "a[0]", ".x"}, tmpl.Paths()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"a", "c"}, tmpl.Keys()); diff != "" {
		t.Error(diff)
	}
	var zero Template
	if got, err := zero.Render(nil); got != "" || err != nil || zero.Paths() != nil || zero.String() != "" {
		t.Error("the zero template is not the empty text")
	}
}

func FuzzTemplate(f *testing.F) {
	for _, seed := range []string{"{{a}}", "{{{{a.b[0]}}}}", "{{ a }}", "{{a[", "{{a}}{{b}}", "{{.}}", "{{a..b}}", "x{{a]}}y", "{{" + strings.Repeat("a", 100)} {
		f.Add(seed)
	}
	lookup := state(f, `{"a":{"b":[1]},"b":"{{a}}"}`)
	f.Fuzz(func(t *testing.T, text string) {
		tmpl := ParseTemplate(text)
		lenient := tmpl.RenderLenient(lookup)
		strict, err := tmpl.Render(lookup)
		if err == nil && strict != lenient {
			t.Fatalf("strict %q, lenient %q", strict, lenient)
		}
		if len(tmpl.Paths()) == 0 && lenient != text {
			t.Fatalf("%q without placeholders became %q", text, lenient)
		}
		rest := text
		for _, p := range tmpl.Paths() {
			_, after, found := strings.Cut(rest, "{{"+p+"}}")
			if !found || p == "" || strings.Trim(p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.[]") != "" {
				t.Fatalf("path %q is not in %q", p, text)
			}
			rest = after
		}
		if _, err := tmpl.Eval(lookup); err != nil && !errors.As(err, new(*MissingError)) {
			t.Fatal(err)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	lookup := state(b, `{"topic":"bees","user":{"name":"Ada"},"list":[1,2,3]}`)
	tmpl := ParseTemplate("Write about {{topic}} for {{user.name}}.\nUse {{list[1]}} of {{list}}.\n" + strings.Repeat("More text. ", 50))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := tmpl.Render(lookup); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseTemplate(b *testing.B) {
	text := strings.Repeat("Some {{key.member[0]}} text {{ and }} braces {. ", 100)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		ParseTemplate(text)
	}
}
