package shape_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/agent/shape"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/llm"
)

type stock struct {
	Part  string   `json:"part" jsonschema:"the name of the part"`
	Count int      `json:"count"`
	Bins  []string `json:"bins"`
	Note  string   `json:"note,omitempty"`
}

// scripted answers with texts, in pieces, and keeps its requests.
type scripted struct {
	texts    []string
	requests []llm.Request
}

func (m *scripted) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		text := m.texts[len(m.requests)]
		m.requests = append(m.requests, r)
		if !yield(llm.Delta{Reasoning: "hm"}, nil) || !yield(llm.Delta{Text: text[:len(text)/2]}, nil) || !yield(llm.Delta{Text: text[len(text)/2:]}, nil) {
			return
		}
		yield(llm.Delta{Done: &llm.Reply{Usage: llm.Usage{Input: 10, Output: 1},
			Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}}}, nil)
	}
}

func of[T any](t *testing.T) *shape.Shape[T] {
	t.Helper()
	s, err := shape.New[T]()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchema(t *testing.T) {
	var got, want any
	if err := json.Unmarshal(of[stock](t).Schema(), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(`{"type":"object","additionalProperties":false,"required":["part","count","bins"],"properties":{
		"part":{"type":"string","description":"the name of the part"},"count":{"type":"integer"},
		"bins":{"type":"array","items":{"type":"string"}},"note":{"type":"string"}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("schema (-want +got):\n%s", d)
	}
	if _, err := shape.New[func()](); err == nil {
		t.Error("a function has a schema")
	}
}

func TestParse(t *testing.T) {
	s := of[stock](t)
	want := stock{Part: "bolt", Count: 3, Bins: []string{"a"}}
	for _, text := range []string{`{"part":"bolt","count":3,"bins":["a"]}`, "```json\n{\"part\":\"bolt\",\"count\":3,\"bins\":[\"a\"]}\n```"} {
		if got, err := s.Parse(text); err != nil || !cmp.Equal(got, want) {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `Three bolts.`, `{"part":"bolt","count":"3","bins":[]}`, `{"part":"bolt","bins":[]}`,
		`{"part":"bolt","count":3,"bins":null}`, `{"part":"bolt","count":3,"bins":[],"more":1}`, `{"part":"bolt","count":3,"bins":[]} {}`} {
		var wrong *agent.OutputError
		if _, err := s.Parse(text); !errors.As(err, &wrong) || wrong.Text != text {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func TestAnAnswerThatDoesNotFitIsAskedForOnceMore(t *testing.T) {
	good, bad := `{"part":"bolt","count":3,"bins":[]}`, `{"part":"bolt","count":"three","bins":[]}`
	for _, k := range []struct {
		name  string
		texts []string
		calls int
		fails bool
	}{
		{"at once", []string{good}, 1, false},
		{"at the second attempt", []string{bad, good}, 2, false},
		{"never", []string{bad, "Three."}, 2, true},
	} {
		t.Run(k.name, func(t *testing.T) {
			m := &scripted{texts: k.texts}
			s := of[stock](t)
			g, err := agent.Config{Model: m, AroundModel: []agent.ModelMiddleware{s.WrapModel}}.Compile()
			if err != nil {
				t.Fatal(err)
			}
			texts, replies := 0, 0
			var res graph.Result
			r := &graph.Runner{Graph: g, Store: journal.NewMemory()}
			for ev, err := range r.Run(t.Context(), graph.Input{Thread: "t", Set: agent.Turn("How many bolts?"), Topics: graph.TopicEmit}) {
				var wrong *agent.OutputError
				if k.fails != errors.As(err, &wrong) && err != nil {
					t.Error(err)
				}
				switch body := ev.Body.(type) {
				case graph.RunEnded:
					res = body.Result
				case graph.ValueEmitted:
					switch body.Value.(type) {
					case agent.TextDelta:
						texts++
					case agent.ReplyDone:
						replies++
					}
				}
			}
			if len(m.requests) != k.calls || texts != 0 || (res.Status == graph.Done) == k.fails {
				t.Errorf("%d requests, %d pieces of text, status %v", len(m.requests), texts, res.Status)
			}
			if string(m.requests[0].Schema) != string(s.Schema()) {
				t.Errorf("schema %s", m.requests[0].Schema)
			}
			if k.fails {
				return
			}
			if got, err := agent.Output[stock](res.State); err != nil || got.Count != 3 || replies != 1 {
				t.Errorf("got %+v, %v, in %d replies", got, err, replies)
			}
			if used := agent.Spent.Get(res.State).Usage.Input; used != 10*k.calls {
				t.Errorf("%d tokens of input, want those of all requests", used)
			}
			if k.calls == 2 && !strings.Contains(m.requests[1].Messages[2].Text(), "count") {
				t.Errorf("the second request says %q", m.requests[1].Messages[2].Text())
			}
		})
	}
}

func TestANodeBehindTheModelReadsTheWholeReply(t *testing.T) {
	found := graph.Last[stock]("found")
	s := of[stock](t)
	m := &scripted{texts: []string{`{"part":"nut","count":1,"bins":["b"]}`}}
	g, err := graph.Compile(graph.Def{Name: "g", Keys: append(agent.Keys(), found), Start: []string{"ask"},
		Nodes: []graph.Node{agent.Think{Model: m, Request: llm.Request{Schema: s.Schema()}}.Node("ask"), s.Node("read", "ask", found)},
		Edges: []graph.Edge{{From: []string{"ask"}, To: []string{"read"}}, {From: []string{"read"}, To: []string{graph.End}}}})
	if err != nil {
		t.Fatal(err)
	}
	res, err := (&graph.Runner{Graph: g}).Invoke(t.Context(), graph.Input{Set: agent.Turn("Which?")})
	if err != nil || !cmp.Equal(found.Get(res.State), stock{Part: "nut", Count: 1, Bins: []string{"b"}}) {
		t.Errorf("found %+v, error %v", found.Get(res.State), err)
	}
}
