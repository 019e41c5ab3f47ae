package provider

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/llm"
)

// refusing is a connection that counts what it refuses.
type refusing int

func (r *refusing) RoundTrip(*http.Request) (*http.Response, error) {
	*r++
	return nil, errors.New("nothing is sent")
}

// A trial knows what the catalogue says about a model, and which servers have no profile.
func TestTrials(t *testing.T) {
	r := openWith(t, `
clients:
- {name: lab, type: openai-compatible, api_base: 'http://localhost:1/v1'}
- {name: named, type: openai-compatible, api_base: 'http://localhost:1/v1', profile: vllm}
- {name: fast, type: openai-compatible, api_base: 'https://api.groq.com/openai/v1'}
- {name: modern, type: openai-compatible, api_base: 'http://localhost:1/v1', wire: responses}
- {name: recorded, type: script, api_base: x.yaml}
`, environ.Environ{"OPENAI_API_KEY=sk-0123456789abcdefghij"})
	for id, want := range map[string]Trial{
		"lab:m": {Server: "", Unknown: true, Host: "localhost:1"}, "named:m": {Server: "vllm", Host: "localhost:1"}, "fast:m": {Server: "groq", Host: "api.groq.com"},
		"modern:m": {Server: "openai-compatible", Host: "localhost:1"}, "openai:gpt-5.4": {Server: "openai", Schemas: true}, "deepseek:deepseek-chat": {Server: "deepseek", Host: "api.deepseek.com"},
	} {
		got, err := FindTrial(r, id)
		if err != nil || got.Server != want.Server || got.Unknown != want.Unknown || got.Host != want.Host || got.Schemas != want.Schemas || got.ID != id {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	if seeing, _ := FindTrial(r, "openai:gpt-5.4"); !slices.Contains(seeing.Media, "image") || !slices.Contains(seeing.Media, "pdf") || seeing.Facts.IsUnpriced() {
		t.Errorf("%+v", seeing)
	}
	if blind, _ := FindTrial(r, "deepseek:deepseek-chat"); !slices.Equal(blind.Media, []string{"text"}) {
		t.Errorf("%+v", blind)
	}
	for _, id := range []string{"recorded:x", "script:x.yaml", "nobody:x", "lab:", "lab:a,named:b", ""} {
		var why *failure.Error
		if _, err := FindTrial(r, id); !errors.As(err, &why) || why.Kind != failure.Usage {
			t.Errorf("%q: %v", id, err)
		} else if strings.Contains(why.Msg+why.Next, "request") {
			t.Errorf("%q: %v speaks of a request to a server, which nobody made", id, err)
		}
	}
}

// The connections of a trial go through what watches them, and the profile is that of the call.
func TestTrialIsWatched(t *testing.T) {
	r := openWith(t, "clients: [{name: lab, type: openai-compatible, api_base: 'http://localhost:1/v1'}, {name: local, type: ollama, api_base: 'http://localhost:1', proxy: none}]\n", nil)
	for _, id := range []string{"lab:m", "local:m"} {
		trial, err := FindTrial(r, id)
		if err != nil {
			t.Fatal(err)
		}
		var seen refusing
		model, err := trial.Open(t.Context(), "", func(http.RoundTripper) http.RoundTripper { return &seen })
		if err != nil {
			t.Fatal(err)
		}
		if _, err := llm.Generate(t.Context(), model, llm.Request{Messages: []llm.Message{llm.User("hi")}}); err == nil || seen == 0 {
			t.Errorf("%s: %d connections, %v", id, seen, err)
		}
	}
	trial, _ := FindTrial(r, "lab:m")
	if _, err := trial.Open(t.Context(), "no-such", nil); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("%v", err)
	}
}
