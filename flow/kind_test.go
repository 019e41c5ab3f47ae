package flow

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"raddle.dev/draw"
	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
)

// upperNode is a type of node that only these tests know: it writes a text in
// capital letters.
type upperNode struct {
	text     spec.Template
	fallback string
}

var upperKind = &kind{
	Kind: spec.Kind{
		Name: "upper", Doc: "Writes a text in capital letters.", Scoped: "upper", Late: true,
		Required: []string{"text"}, Optional: []string{"fallback", "state_updates"},
	},
	decode: func(m *spec.NodeFields) nodeBody {
		return &upperNode{text: m.AddStrict("text", m.ReadText("text", strictyaml.Required)), fallback: m.ReadFallback(false)}
	},
}

func (b *upperNode) Checks() check.Checks {
	return check.Checks{check.Names: func(c *check.Checker, n *spec.Node) {
		if strings.Contains(b.text.Text, "!") {
			c.ErrorAt(n, n.At("text"), "upper-text", "a text may not shout")
		}
	}}
}

func (b *upperNode) Advise(a *check.Adviser, n *spec.Node) {
	a.WarnZero(n, "text", b.text.Text == "0", "there is nothing to write")
}

func (b *upperNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *upperNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.Quiet = true
	return nil
}

func (b *upperNode) run(v *nodeRun) error {
	text, err := v.renderStrict(b.text, "upper")
	switch {
	case err == nil:
		v.applyUpdates("upper", strings.ToUpper(text))
		return v.goNext()
	case b.fallback != "":
		return v.goTo(b.fallback)
	}
	return err
}

// loadUpper loads a graph whose nodes may be of the type upper, too.
func loadUpper(t *testing.T, text string) (*Agent, error) {
	t.Helper()
	known, err := specKinds(append(slices.Clone(kinds), upperKind))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeCaseFile(t, dir, "graph.yaml", text)
	return Load(dir, Host{kinds: known})
}

const upperGraph = `
name: g
start: first
nodes:
  first: {type: upper, text: "{{initial_prompt}} x", state_updates: {said: "{{upper}}"}, next: second}
  second: {type: upper, text: "{{missing}}", fallback: done, next: done}
  done: {type: end, output: "{{said}}"}
`

// A new type of node needs a row and a body: the reader, the checks, the proof,
// the picture and the run know it by them.
func TestNewKindIsOneRow(t *testing.T) {
	a, err := loadUpper(t, upperGraph)
	if err != nil {
		t.Fatal(err)
	}
	if got := findingTexts(a.Findings); len(got) != 1 || !strings.Contains(got[0], "{{missing}}") || !strings.Contains(got[0], "first -> second") {
		t.Errorf("the proof finds %q", got)
	}
	var picture strings.Builder
	if err := draw.WriteMermaid(&picture, a.Structure(), draw.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"first", "second", "fallback"} {
		if !strings.Contains(picture.String(), part) {
			t.Errorf("the picture has no %q:\n%s", part, picture.String())
		}
	}
	g, err := a.CompileGraph()
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), a.Input("hello"))
	if got := OutcomeOf(res).Output; err != nil || got != "HELLO X" {
		t.Errorf("the run ends with %q, %v", got, err)
	}
}

// What a new type of node reports counts like the findings of the others.
func TestNewKindIsChecked(t *testing.T) {
	for old, want := range map[string][3]string{
		"{{initial_prompt}} x": {"help!", "a text may not shout", ""},
		"{{missing}}":          {"0", "`text` is 0: there is nothing to write", ""},
		"fallback: done":       {"fallbck: done", "unknown key `nodes.second.fallbck`", ""},
		"next: second":         {"next: secnd", "References non-existent node 'secnd' in 'next'", ""},
		"fallback":             {"tools", "unknown key `nodes.second.tools` is ignored", "only nodes of type llm have it, and this one is of type upper"},
	} {
		a, err := loadUpper(t, strings.Replace(upperGraph, old, want[0], 1))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(findingTexts(a.Findings), "\n")
		for _, f := range a.Findings {
			all += "\n" + f.String()
		}
		if !strings.Contains(all, want[1]) || !strings.Contains(all, want[2]) {
			t.Errorf("%s: no finding with %q in:\n%s", want[0], want[1:], all)
		}
	}
	_, err := loadUpper(t, strings.Replace(upperGraph, "type: upper", "type: uper", 1))
	if err == nil || !strings.Contains(err.Error(), "expected one of `agent`, `script`, `approval`, `input`, `llm`, `rag`, `end`, `map`, `wait`, `upper`") {
		t.Errorf("an unknown type fails with %v", err)
	}
	if _, err := ParseGraph("graph.yaml", []byte(upperGraph)); err == nil {
		t.Error("the type of a test is known outside of it")
	}
}

// A row without one of its functions, or without what the guide needs, is found
// when the program starts.
func TestIncompleteKindsAreRejected(t *testing.T) {
	for _, k := range kinds {
		row := reflect.ValueOf(*k)
		for i := range row.NumField() {
			if f := row.Field(i); f.Kind() == reflect.Func && f.IsNil() {
				t.Errorf("the type %s has no function %s", k.Name, row.Type().Field(i).Name)
			}
		}
	}
	for what, spoil := range map[string]func(k *kind){
		"no name":     func(k *kind) { k.Name = "" },
		"no doc":      func(k *kind) { k.Doc = "" },
		"no function": func(k *kind) { k.decode = nil },
	} {
		row := *upperKind
		spoil(&row)
		if _, err := specKinds([]*kind{&row}); err == nil {
			t.Errorf("a type with %s is accepted", what)
		}
	}
}

// The packages that read and check files name no type of node.
func TestReaderAndChecksKnowNoKind(t *testing.T) {
	for _, file := range sourceFiles(t) {
		if !strings.HasPrefix(file, "spec/") && !strings.HasPrefix(file, "check/") {
			continue
		}
		for _, text := range textsOf(t, file) {
			isField := text == "map" && file == "spec/triggers.go" // of triggers
			if graphKinds.Find(text) != nil && text != "agent" && !isField {
				t.Errorf("%s names the type %q", file, text)
			}
		}
	}
}
