package record_test

import (
	"reflect"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/journal"
)

// Readers of records know some statuses of package graph, by the numbers that records hold.
func TestStatusesAreThoseOfTheEngine(t *testing.T) {
	for status, want := range map[record.Status]graph.Status{
		record.Running: graph.Running, record.Done: graph.Done, record.Paused: graph.Paused, record.Failed: graph.Failed,
		record.Abandoned: graph.Abandoned, record.Waiting: graph.Waiting, record.Canceled: graph.Canceled, record.Crashed: graph.Crashed,
	} {
		if graph.Status(status) != want || status.Final() != want.Final() {
			t.Errorf("status %d is %s (final: %v), want %s (%v)", status, graph.Status(status), status.Final(), want, want.Final())
		}
	}
	if fold.KindRemote != graph.KindRemote {
		t.Errorf("remote questions have the kind %q and %q", fold.KindRemote, graph.KindRemote)
	}
	if fold.KindTimer != graph.KindTimer {
		t.Errorf("timers have the kind %q and %q", fold.KindTimer, graph.KindTimer)
	}
}

// Every field of a question is recorded.
func TestQuestionsAreRecordedWhole(t *testing.T) {
	q := graph.Question{ID: "a/ask#2", Node: "ask", Kind: "confirm", Prompt: "Send it?", Options: []string{"yes", "no"}, Free: true,
		Default: "no", Type: "string", Data: []byte(`{"a":1}`), Integer: "uint8", Rejected: "too late",
		Due: time.UnixMicro(1).UTC(), Expired: true}
	for i := range reflect.ValueOf(q).NumField() {
		if reflect.ValueOf(q).Field(i).IsZero() {
			t.Fatalf("the test sets no %s", reflect.TypeFor[graph.Question]().Field(i).Name)
		}
	}
	asked := record.Parts{Question: (*record.Question)(&q)}
	head, data := asked.Append(uint8(journal.KindQuestion), nil, nil)
	var read record.Parts
	if err := read.Read(uint8(journal.KindQuestion), head, data); err != nil || !reflect.DeepEqual(graph.Question(*read.Question), q) {
		t.Errorf("the question is read as %+v (%v)", read.Question, err)
	}
}
