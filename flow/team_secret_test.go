//go:build unix

package flow

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/llm"
)

// leaky is a toolbox whose scripts fail and say the secret.
type leaky string

// Open implements Toolbox.
func (s leaky) Open(ToolNeed) (*Toolset, error) {
	return &Toolset{Instructions: func(context.Context) (string, error) { return "", errors.New("no entry with " + string(s)) }}, nil
}

// What agents and those who sum up say, and why an agent failed, goes from agent to
// agent without secrets: none is in the journal, in what a team tells, or in requests.
func TestSecretsOfTeams(t *testing.T) {
	const secret = "tok-very-secret-2"
	asked := []string{}
	x := newTroupe(t, map[string]string{
		"lead/config.yaml":  leadFile + "summarization_threshold: 20\n",
		"fails/config.yaml": "name: fails\ndynamic_instructions: true\n",
		"says/config.yaml":  "name: says\n",
	}, map[string]role{
		"says": func(context.Context, view) llm.Message { return words("It is " + secret + ", at length.") },
		"lead": func(ctx context.Context, v view) llm.Message {
			asked = append(asked, v.asked+strings.Join(v.results, " "))
			if strings.HasPrefix(v.asked, "The report") {
				return words("In short: " + secret)
			}
			return spawnAll("fails", "says")(ctx, v)
		},
	})
	store := graph.NewMemory()
	a, r := x.runner("lead", Host{Redactor: NewRedactor(secret), Tooling: Tooling{Box: leaky(secret)}}, store)
	in := withThread(a.Input("Go."))
	in.Topics = graph.TopicEmit | graph.TopicRun
	said := ""
	for ev, err := range r.Run(t.Context(), in) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := ev.Body.(type) {
		case graph.ValueEmitted:
			if text, _ := json.Marshal(b.Value); strings.Contains(string(text), secret) {
				t.Errorf("an event of %s holds the secret: %s", ev.Path, text)
			}
		case graph.RunEnded:
			said = OutcomeOf(b.Result).Output
		}
	}
	if !strings.Contains(said, "no entry with [redacted]") || !strings.Contains(said, "In short: [redacted]") {
		t.Errorf("the lead says %s", said)
	}
	for _, text := range asked {
		if strings.Contains(text, secret) {
			t.Errorf("the lead's model is told %s", text)
		}
	}
	for rec, err := range store.Read(t.Context(), "t", graph.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if all := string(rec.Head) + string(rec.Data); strings.Contains(all, secret) {
			t.Errorf("record %d (%s) holds the secret: %s", rec.Seq, rec.Kind, rec.Data)
		}
	}
}
