package value

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// Types of which JSON loses something.
type (
	writesOnly struct{ X int }
	opens      struct {
		Inner struct{ Any any }
	}
	calls  struct{ F map[string]func() }
	embeds struct{ *hiddenBase }
	// hiddenBase is not exported, so JSON cannot set a pointer to it.
	hiddenBase struct{ X int }
	closed     struct{ x int }
	failing    struct{ X int }
)

// x is there for the check of types alone.
var _ = closed{}.x

func (writesOnly) MarshalJSON() ([]byte, error) { return []byte("1"), nil }
func (failing) MarshalJSON() ([]byte, error)    { panic("no JSON today") }
func (*failing) UnmarshalJSON([]byte) error     { panic("no reading today") }

// TestFaults says of a type which part of it cannot be read back, and why.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		t     reflect.Type
		fault string // a part of the reason; "": none
		part  string
		reply bool // the fault is also one of an answer
	}{
		{t: reflect.TypeFor[map[string][]any]()},
		{t: reflect.TypeFor[*tree]()},
		{t: reflect.TypeFor[hidden]()},
		{t: reflect.TypeFor[error]()},
		{t: reflect.TypeFor[[]error]()},
		{t: reflect.TypeFor[opens](), fault: "is any", part: "opens.Inner.Any"},
		{t: reflect.TypeFor[struct{ Err error }](), fault: "an interface", part: "struct.Err", reply: true},
		{t: reflect.TypeFor[[]calls](), fault: "is a func, which has no JSON", part: "calls.F[]", reply: true},
		{t: reflect.TypeFor[complex128](), fault: "is a complex128", part: "it", reply: true},
		{t: reflect.TypeFor[writesOnly](), fault: "MarshalJSON and no UnmarshalJSON", part: "it"},
		{t: reflect.TypeFor[map[bool]int](), fault: "keys are bool", part: "it", reply: true},
		{t: reflect.TypeFor[struct{ M map[point]int }](), fault: "keys are value.point", part: "struct.M", reply: true},
		{t: reflect.TypeFor[map[string]shy](), fault: "has a pointer receiver", part: "it"},
		{t: reflect.TypeFor[map[string]*shy]()},
		{t: reflect.TypeFor[embeds](), fault: "a type that is not exported", part: "embeds.hiddenBase", reply: true},
		{t: reflect.TypeFor[closed](), fault: "only fields that are not exported", part: "closed"},
	} {
		s := StorageOf(c.t)
		if s != StorageOf(c.t) {
			t.Errorf("%s is described twice", c.t)
		}
		if c.fault == "" {
			if s.Fault != nil {
				t.Errorf("%s: %v", c.t, s.Fault)
			}
			continue
		}
		if s.Fault == nil || s.Fault.Path != c.part || !strings.Contains(s.Fault.Reason, c.fault) || s.Fault.Fix == "" {
			t.Errorf("%s: %+v, want %s %s", c.t, s.Fault, c.part, c.fault)
		}
		if (s.Reply != nil) != c.reply {
			t.Errorf("%s, as an answer: %v", c.t, s.Reply)
		}
	}
	want := "type value.opens cannot be stored: opens.Inner.Any is any: JSON would bring it back as another type"
	if err := CheckType[opens](); err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, new(*TypeError)) {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestAnswers decodes answers: what does not fit, and what panics, is an error.
func TestAnswers(t *testing.T) {
	if n, err := DecodeAnswer[int]([]byte("7")); n != 7 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	_, err := DecodeAnswer[int]([]byte(`"seven"`))
	want := `the answer "seven" does not fit int: `
	if err == nil || !strings.HasPrefix(err.Error(), want) || !errors.As(err, new(*json.UnmarshalTypeError)) {
		t.Errorf("a text: %v", err)
	}
	if _, err := DecodeAnswer[failing]([]byte("{}")); err == nil || !strings.Contains(err.Error(), "no reading today") {
		t.Errorf("a panic: %v", err)
	}
	for name, err := range map[string]error{
		"no JSON today":    second(MarshalJSON(failing{})),
		"no reading today": unmarshalJSON([]byte("{}"), &failing{}),
	} {
		if err == nil || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "value.failing") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func second(_ []byte, err error) error { return err }

// TestCopyOfOwnJSON copies what a type with its own JSON hides, if that JSON can be read back.
func TestCopyOfOwnJSON(t *testing.T) {
	was := []*secretive{{list: []int{1}}, {list: []int{2}, broken: true}}
	got := Copy(was).([]*secretive)
	got[0].list[0] = 9
	got[1].list[0] = 9
	if was[0].list[0] != 1 {
		t.Error("the copy shares what its JSON can copy")
	}
	if was[1].list[0] != 9 {
		t.Error("what cannot be copied has changed")
	}
}

// secretive shows its list only in its JSON.
type secretive struct {
	list   []int
	broken bool
}

func (s *secretive) MarshalJSON() ([]byte, error) {
	if s.broken {
		return nil, errors.New("it is broken")
	}
	return json.Marshal(s.list)
}

func (s *secretive) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &s.list) }
