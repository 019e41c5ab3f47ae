package agent_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// What a call did to files is in its event and in the journal, not in what the model reads nor in the JSON of the event. A file
// with a secret is there without its content.
func TestChangesOfFiles(t *testing.T) {
	changes := map[string]tool.FileChange{
		"open":   {Path: "/w/open", Kind: tool.FileCreated, Added: 1, After: &tool.FileImage{Size: 8, Hash: "h1", Text: "quartz1\n"}},
		"secret": {Path: "/w/secret", Kind: tool.FileCreated, Added: 1, After: &tool.FileImage{Size: 8, Hash: "h2", Text: "hunter2\n"}},
	}
	write := tool.Tool{Name: "write", Effect: tool.Idempotent, Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
		var args struct{ File string }
		if err := json.Unmarshal(c.Args, &args); err != nil {
			return tool.Result{}, err
		}
		r := tool.TextResult("written")
		r.Changes = []tool.FileChange{changes[args.File]}
		return r, nil
	}}
	withheld := changes["secret"].Withhold(tool.WithheldSecret)
	want := map[string]tool.FileChange{"a": changes["open"], "b": withheld}
	m := countReplies(call("a", "write", `{"file":"open"}`), call("b", "write", `{"file":"secret"}`), say("Done."))
	store := journal.NewMemory()
	g := compile(t, agent.Config{Model: m, Tools: []tool.Tool{write},
		Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }})
	r := &graph.Runner{Store: store, Graph: g}
	emitted := map[string]tool.FileChange{}
	var state graph.State
	for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("Go."), Topics: graph.TopicEmit | graph.TopicRun}) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if done, ok := b.Value.(agent.ToolDone); ok {
				emitted[done.ID] = done.Changes[0]
			}
		case graph.RunEnded:
			state = b.Result.State
		}
		if text, err := json.Marshal(ev); err != nil || strings.Contains(string(text), "quartz1") {
			t.Errorf("the JSON of an event has the content of a file: %s, %v", text, err)
		}
	}
	if diff := cmp.Diff(want, emitted); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if said, err := json.Marshal(agent.History(state)); err != nil || strings.Contains(string(said), "quartz1") || strings.Contains(string(said), "/w/open") {
		t.Errorf("the conversation has the change of a file: %s, %v", said, err)
	}
	recorded := map[string]tool.FileChange{}
	for rec, err := range journal.Records(t.Context(), store, "t", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(rec.Data), "hunter2") {
			t.Errorf("record %d has the secret", rec.Seq)
		}
		var made struct{ Result *tool.Result }
		if json.Unmarshal(rec.Data, &made) == nil && made.Result != nil {
			recorded["ab"[len(recorded):][:1]] = made.Result.Changes[0]
		}
	}
	if diff := cmp.Diff(want, recorded); diff != "" {
		t.Errorf("journal (-want +got):\n%s", diff)
	}
}
