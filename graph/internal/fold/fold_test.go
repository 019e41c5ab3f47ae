package fold_test

import (
	"reflect"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/wire"
)

// The fold knows some statuses of package graph, by the numbers that records hold.
func TestStatusesAreThoseOfTheEngine(t *testing.T) {
	for status, want := range map[fold.Status]graph.Status{
		fold.Running: graph.Running, fold.Done: graph.Done, fold.Paused: graph.Paused, fold.Failed: graph.Failed,
		fold.Abandoned: graph.Abandoned, fold.Crashed: graph.Crashed,
	} {
		if graph.Status(status) != want || status.Final() != want.Final() {
			t.Errorf("status %d is %s (final: %v), want %s (%v)", status, graph.Status(status), status.Final(), want, want.Final())
		}
	}
	if fold.KindRemote != graph.KindRemote {
		t.Errorf("remote questions have the kind %q and %q", fold.KindRemote, graph.KindRemote)
	}
}

// Every field of a question is recorded.
func TestQuestionsAreRecordedWhole(t *testing.T) {
	q := graph.Question{ID: "a/ask#2", Node: "ask", Kind: "confirm", Prompt: "Send it?", Options: []string{"yes", "no"}, Free: true,
		Default: "no", Type: "string", Data: []byte(`{"a":1}`), Integer: "uint8", Rejected: "too late"}
	for i := range reflect.ValueOf(q).NumField() {
		if reflect.ValueOf(q).Field(i).IsZero() {
			t.Fatalf("the test sets no %s", reflect.TypeFor[graph.Question]().Field(i).Name)
		}
	}
	asked := fold.Question(q)
	var read fold.Question
	r := &wire.Reader{Rest: asked.Encode()}
	read.Decode(r)
	if !reflect.DeepEqual(graph.Question(read), q) || r.Err != nil || len(r.Rest) > 0 {
		t.Errorf("the question is read as %+v (%v, %d bytes left)", read, r.Err, len(r.Rest))
	}
}
