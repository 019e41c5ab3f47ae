package modeltest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/process/provider"
	"raddle.dev/llm"
	"raddle.dev/rag/pdftext"
)

// A puppet answers with replies of a test.
type puppet func(r llm.Request) (llm.Reply, error)

// nowhere is a connection on which nothing is sent.
type nowhere struct{}

// RoundTrip implements [http.RoundTripper].
func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: http.NoBody}, nil
}

// through returns the puppet with requests that go through a connection, as JSON.
func (p puppet) through(connection http.RoundTripper) puppet {
	return func(r llm.Request) (llm.Reply, error) {
		body, err := json.Marshal(r)
		if err != nil {
			return llm.Reply{}, err
		}
		request, err := http.NewRequest(http.MethodPost, "http://localhost", bytes.NewReader(body))
		if err != nil {
			return llm.Reply{}, err
		}
		if _, err := connection.RoundTrip(request); err != nil {
			return llm.Reply{}, err
		}
		return p(r)
	}
}

// Stream implements [llm.Model].
func (p puppet) Stream(_ context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		reply, err := p(r)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		for _, part := range reply.Message.Parts {
			if text, ok := part.(llm.Text); ok && text.Extra == nil && !yield(llm.Delta{Text: text.Text}, nil) {
				return
			}
		}
		yield(llm.Delta{Done: &reply}, nil)
	}
}

// says returns a reply with a text.
func says(text string) llm.Reply {
	return llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}}, Usage: llm.Usage{Input: 5, Output: 5}, Stop: llm.StopEnd}
}

// calls returns a reply with calls of tools.
func calls(pairs ...string) llm.Reply {
	r := says("")
	r.Message.Parts, r.Stop = nil, llm.StopTools
	for i := 0; i < len(pairs); i += 2 {
		r.Message.Parts = append(r.Message.Parts, llm.ToolCall{ID: "c" + pairs[i+1], Name: pairs[i], Args: json.RawMessage(pairs[i+1])})
	}
	return r
}

// obeys answers as a good model does.
func obeys(r llm.Request) (llm.Reply, error) {
	last := r.Messages[len(r.Messages)-1]
	switch text := last.Text(); {
	case last.Role == llm.RoleTool:
		return says("It is clear."), nil
	case r.MaxTokens < 100:
		cut := says("one, two")
		cut.Stop = llm.StopLength
		return cut, nil
	case len(r.Schema) > 0:
		return says(`{"city":"Brno","number":7}`), nil
	case strings.Contains(text, "both"):
		return calls("weather", `{"city":"A"}`, "weather", `{"city":"B"}`), nil
	case strings.Contains(text, "Call the tool"):
		return calls("weather", `{"city":"A"}`), nil
	case strings.Contains(text, "colour"):
		return says("It is red."), nil
	case strings.Contains(text, "document"):
		return says("Marigold"), nil
	}
	return says("violet"), nil
}

// runPuppet plays the steps with a puppet.
func runPuppet(t *testing.T, p puppet, facts flow.ModelFacts) (Report, error) {
	t.Helper()
	target := Target{Trial: &provider.Trial{ID: "x:y", Model: "y", Server: "x", Facts: facts}, Open: func(_ context.Context, _ string, watch func(http.RoundTripper) http.RoundTripper) (llm.Model, error) {
		return p.through(watch(nowhere{})), nil
	}}
	return Run(t.Context(), target, func(Result) {})
}

// What a model says wrongly is a failure of the step that shows it, and of no other.
func TestJudgements(t *testing.T) {
	when := func(step func(r llm.Request) bool, answer llm.Reply) puppet {
		return func(r llm.Request) (llm.Reply, error) {
			if step(r) {
				return answer, nil
			}
			return obeys(r)
		}
	}
	asked := func(words string) func(llm.Request) bool {
		return func(r llm.Request) bool { return strings.Contains(r.Messages[len(r.Messages)-1].Text(), words) }
	}
	whole := says("violet")
	whole.Message.Parts = []llm.Part{llm.Text{Text: "violet", Extra: json.RawMessage(`{}`)}} // it does not come in pieces
	thought := says("")
	thought.Message.Parts = []llm.Part{llm.Reasoning{Text: "hm"}}
	uncounted := func(r llm.Request) (llm.Reply, error) {
		reply, err := obeys(r)
		reply.Usage = llm.Usage{Output: 3}
		return reply, err
	}
	for name, c := range map[string]struct {
		model puppet
		step  string
		want  string
		minor bool // it is none of the model's claims
	}{
		"empty":         {when(asked("word: violet"), says("")), "answer", "the reply is empty", false},
		"only thoughts": {when(asked("word: violet"), thought), "answer", "contains only reasoning", false},
		"not streamed":  {when(asked("word: violet"), whole), "answer", "as a stream", false},
		"no call":       {when(asked("Brno."), says("I cannot")), "tool", `the model answered "I cannot" and called nothing`, false},
		"other tool":    {when(asked("Brno."), calls("wether", `{"city":"A"}`)), "tool", "wether", false},
		"no argument":   {when(asked("Brno."), calls("weather", `{"town":"A"}`)), "tool", `{"town":"A"}`, false},
		"one at a time": {when(asked("both"), calls("weather", `{"city":"A"}`)), "parallel", "one tool at a time", true},
		"silent after":  {when(func(r llm.Request) bool { return len(r.Messages) == 3 && len(r.Messages[2].Parts) == 1 }, says(" ")), "round", "after the result the reply is empty", false},
		"blind":         {when(asked("colour"), says("Blue, I think")), "picture", "the picture is red", true},
		"cannot read":   {when(asked("document"), says("nothing")), "pdf", "the document says marigold", true},
		"other form":    {when(func(r llm.Request) bool { return len(r.Schema) > 0 }, says(`{"city":"Brno"}`)), "schema", "which the schema forbids", true},
		"without limit": {when(func(r llm.Request) bool { return r.MaxTokens < 100 }, says("one, two and so on")), "limit", `ended with "end"`, false},
		"not counted":   {uncounted, "usage", "counts no tokens", false},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := runPuppet(t, c.model, flow.ModelFacts{})
			if err != nil || report.Works != c.minor {
				t.Errorf("%v, works: %v", err, report.Works)
			}
			for _, r := range report.Steps {
				if failed := r.Status == Fails; failed != (r.Step == c.step) || failed && (!strings.Contains(r.Error, c.want) || r.Means == "" || r.Claimed == c.minor) {
					t.Errorf("%+v", r)
				}
			}
		})
	}
	blind := when(asked("colour"), says("Blue"))
	target := Target{Trial: &provider.Trial{ID: "x:y", Media: []string{"text", "image"}}, Open: func(_ context.Context, _ string, watch func(http.RoundTripper) http.RoundTripper) (llm.Model, error) {
		return blind.through(watch(nowhere{})), nil
	}}
	if report, err := Run(t.Context(), target, func(Result) {}); err != nil || report.Works {
		t.Errorf("the model claims that it sees pictures: %+v, %v", report, err)
	}
	if report, err := runPuppet(t, obeys, flow.ModelFacts{}); err != nil || !report.Works || report.Cost != nil || report.Most.Cost != nil {
		t.Errorf("%+v, %v", report, err)
	}
}

// The document is a PDF with its word.
func TestDocument(t *testing.T) {
	text, err := pdftext.Read(t.Context(), writeDocument(), 1<<20)
	if err != nil || strings.TrimSpace(text) != documentWord {
		t.Errorf("%q, %v", text, err)
	}
}

// The price counts at its highest, and a failure that all steps would have ends the test.
func TestPlan(t *testing.T) {
	facts := flow.ModelFacts{Price: agent.Price{Input: 1, Output: 10, Cached: 0.1, Written: 2}}
	report, err := runPuppet(t, obeys, facts)
	if most := float64(2*report.Most.Input+10*report.Most.Output) / 1e6; err != nil || *report.Most.Cost < most-1e-9 || *report.Most.Cost > most+1e-9 || *report.Cost <= 0 {
		t.Errorf("%+v, %v", report, err)
	}
	none, _ := runPuppet(t, obeys, flow.ModelFacts{Price: facts.Price, NoTools: true})
	if none.Most.Requests != 5 || *none.Most.Cost >= *report.Most.Cost {
		t.Errorf("%+v", none.Most)
	}
	count := 0
	report, err = runPuppet(t, func(r llm.Request) (llm.Reply, error) {
		if count++; count == 3 {
			return llm.Reply{}, &llm.Error{Class: llm.Overloaded, Message: "later"}
		}
		return obeys(r)
	}, facts)
	if err == nil || count != 3 || report.Works || len(report.Steps) != 2 || report.Error == "" {
		t.Errorf("%d requests, %+v, %v", count, report, err)
	}
}

// A request that changes what came before is found, and marks for caches may move.
func TestBeginning(t *testing.T) {
	const first = `{"model":"m","max_tokens":5,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]}]}`
	next := strings.Replace(strings.Replace(strings.ReplaceAll(first, `,"cache_control":{"type":"ephemeral"}`, ""), `}]}]}`, `}]},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"x"}]}]}`, 1), `:5`, `:6`, 1)
	if err := checkBeginning([]byte(first), []byte(next)); err != nil {
		t.Error(err)
	}
	if got := strings.Join(findReturned([]byte(first), []byte(next)), " "); got != "thinking signature" {
		t.Error(got)
	}
	for _, change := range [][2]string{{`"text":"s"`, `"text":"t"`}, {`"text":"a"`, `"text":"b"`}, {`"role":"user"`, `"role":"system"`}} {
		if err := checkBeginning([]byte(first), []byte(strings.Replace(next, change[0], change[1], 1))); !errors.Is(err, errNewBeginning) {
			t.Errorf("%v: %v", change, err)
		}
	}
	if err := checkBeginning([]byte(next), []byte(first)); !errors.Is(err, errNewBeginning) {
		t.Errorf("a shorter one: %v", err)
	}
}
