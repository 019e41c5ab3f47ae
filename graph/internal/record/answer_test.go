package record_test

import (
	"reflect"
	"testing"
	"time"

	"raddle.dev/graph/internal/record"
)

// A question has several names: the longest is the nearest.
func TestNamedBy(t *testing.T) {
	q := record.Question{ID: "team/writer[2]/ask#3"}
	for word, want := range map[string]int{
		"team/writer[2]/ask#3": 0, "team/writer[2]/ask": 0,
		"ask": 1, "writer[2]/ask": 1, "writer/ask": 1, "team/writer/ask": 1,
		"writer": 2, "writer[2]": 2, "team/writer": 2,
		"team": 3,
		"":     -1, "ask#3": -1, "#3": -1, "as": -1, "[2]": -1,
		"writer[3]/ask": -1, "team/ask": -1, "x/team/writer/ask": -1, "/ask": -1, "ask/": -1,
	} {
		distance, ok := q.NamedBy(word)
		if !ok {
			distance = -1
		}
		if distance != want {
			t.Errorf("%q: the distance is %d, want %d", word, distance, want)
		}
	}
	if _, ok := (&record.Question{}).NamedBy(""); ok {
		t.Error("a question without an id has the name \"\"")
	}
}

// An answer that does not fit says why.
func TestDescribeMismatch(t *testing.T) {
	choice := record.Question{Type: "string", Options: []string{"yes", "no"}}
	free := record.Question{Type: "string", Options: []string{"yes"}, Free: true}
	flag := record.Question{Type: "boolean"}
	small := record.Question{Type: "number", Integer: "int8"}
	natural := record.Question{Type: "number", Integer: "uint64"}
	for _, c := range []struct {
		q            record.Question
		answer, want string
	}{
		{choice, `"yes"`, ""},
		{choice, `"\u0079es"`, ""},
		{choice, `"maybe"`, "it must be one of yes, no"},
		{choice, `true`, "it must be a string, not a boolean"},
		{free, `"maybe"`, ""},
		{free, `{}`, "it must be a string, not an object"},
		{flag, `false`, ""},
		{flag, `null`, "it must be a boolean, not null"},
		{flag, ``, "it must be a boolean, not nothing"},
		{flag, `[1]`, "it must be a boolean, not an array"},
		{record.Question{Type: "array"}, `1`, "it must be an array, not a number"},
		{record.Question{}, `[1]`, ""},
		{small, `127`, ""},
		{small, `-128`, ""},
		{small, `128`, "it must be an integer (int8), not 128"},
		{small, `1.0`, "it must be an integer (int8), not 1.0"},
		{small, `"1"`, `it must be an integer (int8), not "1"`},
		{natural, `18446744073709551615`, ""},
		{natural, `-1`, "it must be an integer (uint64), not -1"},
	} {
		if got := c.q.DescribeMismatch([]byte(c.answer), ""); got != c.want {
			t.Errorf("%s for %+v: %q, want %q", c.answer, c.q, got, c.want)
		}
		if got := c.q.DescribeMismatch([]byte(c.answer), "refused"); got != "" {
			t.Errorf("a refusal does not fit: %q", got)
		}
	}
}

// Time answers a timer, and refuses any other question.
func TestAnswerOfTime(t *testing.T) {
	q := record.Question{Due: time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}
	if answer, refused := q.AnswerOfTime(true); string(answer) != "null" || refused != "" {
		t.Errorf("a timer: %s, %q", answer, refused)
	}
	late := "no one has answered before the deadline, 2026-05-04T03:02:01Z"
	if answer, refused := q.AnswerOfTime(false); answer != nil || refused != late {
		t.Errorf("a deadline: %s, %q", answer, refused)
	}
}

// The causes of a task are the failures of the last step that its node handles.
func TestCausesOf(t *testing.T) {
	fits := record.Failure{Node: "a", Text: "it broke", Handler: "mend", To: 2, Step: 4}
	other := []record.Failure{
		{Handler: "mend", To: 1, Step: 4},
		{Handler: "mend", To: 2, Step: 3},
		{Handler: "else", To: 2, Step: 4},
		{Step: 4},
	}
	f := record.Frame{
		Step:     5,
		Tasks:    []record.Task{{Node: "plain"}, {Node: "mend", Cause: "it broke"}, {Node: "old", Cause: "text only"}},
		Failures: append(other, fits, fits),
	}
	for at, want := range [][]record.Failure{nil, {fits, fits}, {{Text: "text only"}}} {
		if got := f.CausesOf(at); !reflect.DeepEqual(got, want) {
			t.Errorf("task %d: %+v, want %+v", at, got, want)
		}
	}
	if got := record.NextNames(f.Tasks); !reflect.DeepEqual(got, []string{"plain", "mend", "old"}) {
		t.Errorf("next: %q", got)
	}
	again := []record.Task{{Node: "a"}, {Node: "a", Index: 1}, {Node: "b"}, {Node: "a", Index: 2}}
	if got := record.NextNames(again); !reflect.DeepEqual(got, []string{"a", "b"}) {
		t.Errorf("next, of several tasks: %q", got)
	}
}

// A frame is below the task that has started it.
func TestParentOf(t *testing.T) {
	s := record.ThreadState{Frames: map[string]*record.Frame{"": {Step: 1}, "a/": {Step: 2}, "a/b[1]/": {Step: 3}}}
	for path, want := range map[string]int{"": 0, "a/": 1, "a/b[1]/": 2, "a/b[1]/c/": 3, "lost/b/": 0} {
		got := 0
		if f := s.ParentOf(path); f != nil {
			got = f.Step
		}
		if got != want {
			t.Errorf("the parent of %q is the frame with %d steps, want %d", path, got, want)
		}
	}
	b := record.Parts{
		Meta:    []byte("12"),
		User:    "345",
		Shape:   []byte("6"),
		Answers: []record.PresetAnswer{{ID: "78", Value: []byte("9")}, {}},
	}
	if got := b.StartSize(); got != 9 {
		t.Errorf("a start adds %d bytes, want 9", got)
	}
}
