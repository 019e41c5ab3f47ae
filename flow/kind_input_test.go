package flow

import (
	"errors"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
)

func TestAnswerHeadline(t *testing.T) {
	for _, k := range []struct{ validation, answer, want string }{
		{"len(input) > 2", "x", "Too short: at least 3 characters."},
		{"len(input)>=1", "", "Too short: at least 1 character."},
		{"len(input) < 3", "abc", "Too long: at most 2 characters."},
		{"len(input) <= 3", "abcd", "Too long: at most 3 characters."},
		{"len(input) == 4", "abc", "Wrong length: exactly 4 characters."},
		{"len(input) == 4", "ééab", "Wrong length: exactly 4 characters. Letters such as é count as two or more."},
		{"len(input) <= 3", "éé", "Too long: at most 3 characters. Letters such as é count as two or more."},
		{"len(input) < 0", "a", "No answer can satisfy len(input) < 0."},
		{"len(input) > 18446744073709551615", "a", "No answer can satisfy len(input) > 18446744073709551615."},
	} {
		err := spec.ValidateInput(k.validation, k.answer)
		if err == nil {
			t.Fatal(k)
		}
		if got := AnswerHeadline(err.Error()); got != k.want {
			t.Errorf("%s of %q: %s, want %s", k.validation, k.answer, got, k.want)
		}
	}
	for _, other := range []string{"", "it must be one of a, b", "Input failed validation 'x' (got 1 chars)"} {
		if got := AnswerHeadline(other); got != other {
			t.Errorf("%q became %q", other, got)
		}
	}
}

// An answer that fails its validation is refused before it is recorded: the question
// stays open, and a resume in another process finds the rule.
func TestAnAnswerThatFailsItsValidationIsNotRecorded(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
start: ask
nodes:
  ask: {type: input, question: "name?", default: ab, validation: "len(input) > 3", state_updates: {name: "{{input}}"}, next: e}
  e: {type: end, output: "{{name}}"}
`})
	res, err := r.drive()
	if err != nil || len(res.Questions) != 1 {
		t.Fatal(res, err)
	}
	for _, bad := range []string{"abc", "a", "éa"} {
		var e *graph.AnswerError
		_, err := r.drive(graph.Answer{ID: "ask", Value: bad})
		s, _ := history.Inspect(t.Context(), r.store, "t", 0)
		if !errors.As(err, &e) || !strings.HasPrefix(e.Reason, "Input failed validation 'len(input) > 3' (got ") || s.Head != res.Head {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range []string{"", "ab", "abcd"} {
		s, err := history.Inspect(t.Context(), r.store, "t", 0)
		if err != nil || s.Status != graph.Waiting {
			t.Fatal(s, err)
		}
		a, err := Load(r.dir, Host{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := a.CompileGraph()
		if err != nil {
			t.Fatal(err)
		}
		if err := (&graph.Runner{Graph: g, Store: r.store}).CheckAnswers(t.Context(), "t", graph.Answer{ID: "ask", Value: good}); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	res, err = r.drive(graph.Answer{ID: "ask", Value: "abcd"})
	if err != nil || OutcomeOf(res).Output != "abcd" {
		t.Error(res, err)
	}
}

// A validation that cannot be read is a fault of the file: the answer is taken, and
// the node fails with the text of the file format.
func TestAValidationThatCannotBeReadFailsTheNode(t *testing.T) {
	r := newResumable(t, map[string]string{"graph.yaml": `
name: g
start: ask
nodes:
  ask: {type: input, question: "name?", validation: "size > 3", state_updates: {name: "{{input}}"}, next: e}
  e: {type: end, output: "{{name}}"}
`})
	if _, err := r.drive(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.drive(graph.Answer{ID: "ask", Value: "abcd"}); err == nil || !strings.Contains(err.Error(), "Unsupported validation expression 'size > 3'") {
		t.Error(err)
	}
}
