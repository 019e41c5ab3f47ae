package runs

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/internal/storage/attach"
)

// notOnTheSheet are the fields of a start record that the sheet about a run from elsewhere does not show, and why.
var notOnTheSheet = map[string]string{
	"Sources":     "files are compared with those that are there",
	"Definition":  "it is for replays",
	"Definitions": "they are for replays",
	"Prompt":      "it counts in any case, and the run shows it",
	"Version":     "nothing depends on it",
	"Picture":     "it is only shown",
	"Strict":      "it only makes more things errors",
	"Budget":      "it only limits what the run may spend",
	"Deadline":    "it only ends the run, and only after a person has accepted it",
	"TraceParent": "it never counts",
	"Via":         "it is only shown",
	"By":          "it is only shown",
	"Remote":      "it never counts",
	"Parent":      "it never counts",
	"Named":       "it never counts",
}

// Each field of a start record that counts when a person accepts the run as a whole is shown before.
func TestSheetShowsEachField(t *testing.T) {
	show := func(rec *Record) string {
		s := &originSheet{}
		s.describeStart(rec, "/here")
		s.describeAuthority(rec, &history.Snapshot{}, nil)
		return s.text.String()
	}
	plain := show(&Record{})
	number := 0.25
	values := map[reflect.Type]any{
		reflect.TypeFor[string](): "xyz", reflect.TypeFor[[]string](): []string{"xyz"}, reflect.TypeFor[map[string]string](): map[string]string{"xyz": "v"},
		reflect.TypeFor[bool](): true, reflect.TypeFor[*float64](): &number, reflect.TypeFor[*flow.RemoteInput](): &flow.RemoteInput{Prompt: "xyz"},
		reflect.TypeFor[[]attach.Attachment](): []attach.Attachment{{Name: "xyz", MIME: "image/png", Bytes: 9}},
		reflect.TypeFor[*graph.Structure]():    &graph.Structure{Name: "xyz"},
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Record]()) {
		if f.Anonymous {
			continue
		}
		value, known := values[f.Type]
		if !known {
			if notOnTheSheet[f.Name] == "" {
				t.Errorf("%s: the test has no value of the type %s", f.Name, f.Type)
			}
			continue
		}
		rec := &Record{}
		reflect.ValueOf(rec).Elem().FieldByIndex(f.Index).Set(reflect.ValueOf(value))
		if shown := show(rec) != plain; shown != (notOnTheSheet[f.Name] == "") {
			t.Errorf("%s is shown: %t", f.Name, shown)
		}
	}
}

// What does not fit on the sheet is counted, and the run cannot be accepted as a whole; of each kind of thing there is a most.
func TestSheetIsBounded(t *testing.T) {
	many := make([]string, 500)
	snap := &history.Snapshot{}
	for i := range many {
		many[i] = fmt.Sprint("line", i)
		snap.Questions = append(snap.Questions, graph.Question{ID: many[i]})
		snap.Ahead = append(snap.Ahead, graph.Answer{ID: many[i], Value: json.RawMessage("1")})
	}
	for name, fill := range map[string]func(s *originSheet){
		"files":          func(s *originSheet) { s.describeAuthority(&Record{Files: many}, &history.Snapshot{}, nil) },
		"ahead":          func(s *originSheet) { s.describeAuthority(&Record{}, snap, nil) },
		"open questions": func(s *originSheet) { s.describeNext(snap, nil) },
		"input": func(s *originSheet) {
			s.describeAuthority(&Record{Distribution: Distribution{Input: &flow.RemoteInput{Prompt: strings.Repeat("x", 10_000)}}}, &history.Snapshot{}, nil)
		},
	} {
		s := &originSheet{}
		fill(s)
		if lines := strings.Count(s.text.String(), "\n"); !s.cut || lines > 2*mostShown || s.text.Len() > 3*longestShown {
			t.Errorf("%s: %d lines with %d bytes, cut: %t", name, lines, s.text.Len(), s.cut)
		}
	}
}
