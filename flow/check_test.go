package flow

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
)

func TestValidationError(t *testing.T) {
	f := mustParse(t, "name: g\nstart: a\nnodes:\n  a: {type: llm, prompt: '{{x}}', next: b, extra: 1}\n")
	findings := slices.Concat(f.Findings, check.ValidateFile(f, check.Context{}), check.ProvePlaceholders(f))
	err := spec.ValidationFailure(findings)
	var invalid *spec.ValidationError
	if !errors.As(err, &invalid) || len(invalid.Findings) != 2 {
		t.Fatal(err)
	}
	want := "Graph validation failed with 2 error(s):\n  [a] References non-existent node 'b' in 'next'\n  Graph has no end nodes; execution would never terminate"
	if err.Error() != want {
		t.Error(err)
	}
	if !strictyaml.HasErrors(findings) || strictyaml.HasErrors(f.Findings) || !strictyaml.HasErrors(strictyaml.PromoteUnknownKeys(f.Findings)) || strictyaml.HasErrors(f.Findings) {
		t.Error("strict changes the wrong findings")
	}
	if spec.ValidationFailure(strictyaml.PromoteUnknownKeys(f.Findings)) != nil {
		t.Error("an unknown key is no finding of the validator")
	}
	if got := f.Findings[0].String(); got != "graph.yaml:4:44: warning: [a] unknown key `nodes.a.extra` is ignored" {
		t.Error(got)
	}
	if (strictyaml.Pos{File: "x"}).String() != "x" {
		t.Error("a place without a line")
	}
}

// TestKinds holds the table of types against the decoders: a decoder that asks
// for a field must list it, and the other way round.
func TestKinds(t *testing.T) {
	names := []string{}
	for _, k := range graphKinds {
		names = append(names, k.Name)
		m, n := strictyaml.NewFields(&strictyaml.Problems{}, strictyaml.Mapping{}, ""), &spec.Node{}
		k.DecodeNode(m, n)
		if n.Kind() != k.Name || n.Body == nil {
			t.Errorf("%s makes %s with %v", k.Name, n.Kind(), n.Body)
		}
		listed := slices.Sorted(slices.Values(slices.Concat(k.Required, k.Optional)))
		asked := slices.Sorted(slices.Values(m.Known))
		if diff := cmp.Diff(listed, asked); diff != "" {
			t.Errorf("%s (-listed +asked):\n%s", k.Name, diff)
		}
		var missing []string
		for _, f := range m.Problems.List {
			missing = append(missing, f.Message)
		}
		required := len(k.Required)
		if k.Name == "wait" {
			required++ // for, or until
		}
		if len(missing) != required {
			t.Errorf("%s requires %q but says %q", k.Name, k.Required, missing)
		}
	}
	if want := []string{"agent", "script", "approval", "input", "llm", "rag", "end", "map", "wait"}; !slices.Equal(names, want) {
		t.Errorf("messages list the types in the order %q, want %q", names, want)
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(spec.ReducerNames)), reducerTable()); diff != "" {
		t.Error(diff)
	}
}

func reducerTable() []string {
	var names []string
	for name := range spec.ReducersByKey {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestProofFindsNothingInSoundGraphs runs the proof over the graphs of the
// cases: where it finds something, the case has to be listed here.
func TestProofFindsNothingInSoundGraphs(t *testing.T) {
	// These graphs read keys on purpose that nothing sets.
	unset := []string{
		"agent-prompt-strict", "approval-question-strict", "input-question-strict", "llm-strict-miss-is-node-failure",
		"map-over-missing", "tpl-scoped-var-cleared",
	}
	var found []string
	for _, c := range readCases(t) {
		if !c.HasGraph || !strings.HasPrefix(c.Path, "testdata") {
			continue
		}
		f, err := ParseGraph("graph.yaml", []byte(c.Graph))
		if err == nil && c.Kind == "run" && len(check.ProvePlaceholders(f)) > 0 {
			found = append(found, c.ID)
		}
	}
	if diff := cmp.Diff(unset, found); diff != "" {
		t.Errorf("(-listed +found):\n%s", diff)
	}
}

// A graph that disables the validator shows none of its findings when it runs; the others, and those of check, stay.
func TestFindingsForRun(t *testing.T) {
	text := "name: g\nsettings: {validate_before_run: %v}\nstart: a\nnodes:\n  a: {type: end, output: '{{gone}}', next: nowhere, extra: 1}\n"
	for _, validates := range []bool{true, false} {
		dir := t.TempDir()
		writeCaseFile(t, dir, "graph.yaml", fmt.Sprintf(text, validates))
		a, err := Load(dir, Host{})
		if err != nil {
			t.Fatal(err)
		}
		byClass := func(found []strictyaml.Finding) map[strictyaml.Class]int {
			n := map[strictyaml.Class]int{}
			for _, f := range found {
				n[f.Class]++
			}
			return n
		}
		want := byClass(a.Findings)
		if want[strictyaml.ClassValidate] == 0 || len(want) < 2 {
			t.Fatalf("the file has the findings %v", a.Findings)
		}
		if !validates {
			delete(want, strictyaml.ClassValidate)
		}
		if diff := cmp.Diff(want, byClass(a.FindingsForRun())); diff != "" {
			t.Errorf("validate_before_run %v (-want +got):\n%s", validates, diff)
		}
	}
}
