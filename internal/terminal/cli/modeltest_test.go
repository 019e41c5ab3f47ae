//go:build unix

package cli_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/termtest"
)

// A tested is a server with a model whose test the command plays.
type tested struct {
	url string

	mu   sync.Mutex
	keys []string // of all requests
}

// startTested starts a server of a vendor. refuse returns the status and the words with which it refuses a request, 0 if it takes it; nil takes all.
func startTested(t *testing.T, v llmtest.Vendor, refuse func(r *http.Request, body []byte) (status int, words string)) *tested {
	t.Helper()
	m := &tested{}
	obey := v.NewHandler(func(body []byte) (llmtest.Turn, int) { return llmtest.Obey(body), http.StatusOK })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the client is gone
		}
		m.mu.Lock()
		m.keys = append(m.keys, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		m.mu.Unlock()
		if refuse != nil {
			if status, words := refuse(r, body); status != 0 {
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(status)
				text, _ := json.Marshal(map[string]any{"error": map[string]string{"message": words}}) // texts
				_, _ = w.Write(text)
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		obey.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// count returns how many requests came.
func (m *tested) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.keys)
}

// workplace returns a directory whose client "lab" is the server.
func (m *tested) workplace(t *testing.T, typ, more string) *workplace {
	return newWorkplace(t, "-- .config/raddle/config.yaml --\nread_timeout: 1s\nclients:\n- {name: lab, type: "+typ+", api_base: '"+m.url+"/v1', api_key: sk-lab-0123456789"+more+"}\n")
}

// A testReport is what raddle models test --output json writes.
type testReport struct {
	Model, Server, Date, Row, Error string
	Works                           bool
	Steps                           []struct {
		Step, Status, Detail, Error, Means string
		Claimed                            bool
	}
	Profile *struct {
		Fits     bool
		Name     string
		Same     []string
		Refusals []string
	}
	Usage struct{ Input, Output, Cached, Reasoning int }
	Cost  *float64 `json:"cost_usd"`
	Most  struct {
		Requests int
		Cost     *float64 `json:"cost_usd"`
	}
}

// testModel runs the command and returns its report.
func (w *workplace) testModel(model string, code int) (report testReport) {
	w.t.Helper()
	r := w.run("models", "test", model, "--yes", "--output", "json")
	if err := json.Unmarshal([]byte(r.out), &report); err != nil || r.code != code {
		w.t.Fatalf("%v, exit code %d, want %d\n%s\n%s", err, r.code, code, r.out, r.err)
	}
	return report
}

// statusOf returns how a step ended.
func (r testReport) statusOf(step string) string {
	for _, s := range r.Steps {
		if s.Step == step {
			return s.Status
		}
	}
	return "missing"
}

func TestModelsTestOpenAI(t *testing.T) {
	m := startTested(t, llmtest.OpenAIResponses(), nil)
	w := m.workplace(t, "openai", ", models: [{name: gpt-5.4, reasoning_levels: [low, high], input_price: 2, output_price: 10}]")
	report := w.testModel("lab:gpt-5.4", 0)
	for _, s := range report.Steps {
		if s.Status != "yes" {
			t.Errorf("%+v", s)
		}
	}
	if len(report.Steps) != 10 || !report.Works || report.Profile != nil || report.Server != "openai" || m.count() != 10 || report.Most.Requests != 10 {
		t.Errorf("%d requests, %+v", m.count(), report)
	}
	if report.Usage.Cached == 0 || report.Usage.Reasoning == 0 || report.Cost == nil || *report.Cost <= 0 || *report.Cost > *report.Most.Cost {
		t.Errorf("%+v", report)
	}
	if !strings.HasPrefix(report.Row, "| openai | gpt-5.4 | 20") || !strings.HasSuffix(report.Row, "| yes | yes | `encrypted_content` |") {
		t.Error(report.Row)
	}
	if list := w.runs(); len(list) > 0 {
		t.Errorf("runs were stored: %v", list)
	}
	r := w.run("models", "test", "lab:gpt-5.4", "--yes")
	for _, want := range []string{"✓ streamed answer    \"violet\"\n", "✓ tool call          with reasoning, at effort low\n", "✓ second round       reasoning goes back as encrypted_content\n", "Everything that the model claims works. The test cost $0.00", "\n" + report.Row + "\n"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output lacks %q:\n%s", want, r.out)
		}
	}
	if !strings.Contains(r.err, "lab:gpt-5.4 at 127.0.0.1:") || !strings.Contains(r.err, "at most $") || strings.Contains(r.out+r.err, "sk-lab") {
		t.Error(r.err)
	}
}

// An unknown server gets the profile of the server that it behaves like.
func TestModelsTestFindsProfiles(t *testing.T) {
	want := map[string]string{
		"groq": "groq", "cerebras": "groq", "mistral": "mistral", "deepseek": "deepseek", "moonshot": "deepseek", "openrouter": "openrouter",
		"gemini-openai": "gemini-openai", "litellm": "litellm", "minimax": "minimax", "vllm": "", "llama.cpp": "",
	}
	for _, v := range llmtest.CompatibleServers() {
		name, listed := want[v.Name]
		if !listed {
			continue
		}
		t.Run(v.Name, func(t *testing.T) {
			w := startTested(t, v.WithLacks(), nil).workplace(t, "openai-compatible", "")
			report := w.testModel("lab:some-model", 0)
			if p := report.Profile; p == nil || !p.Fits || p.Name != name {
				t.Errorf("profile %+v, want %q", p, name)
			}
			if seen := []string{"openrouter", "gemini-openai", "litellm"}; slices.Contains(seen, v.Name) && len(report.Profile.Refusals) > 0 {
				t.Errorf("the server had to refuse something before its replies were looked at: %v", report.Profile.Refusals)
			}
			if v.Name == "groq" && !slices.Equal(report.Profile.Same, []string{"cerebras"}) {
				t.Errorf("%v", report.Profile.Same)
			}
			for _, step := range []string{"answer", "tool", "parallel", "round", "moved", "limit", "usage"} {
				if report.statusOf(step) != "yes" {
					t.Errorf("%s: %+v", step, report.Steps)
				}
			}
		})
	}
}

// Servers whose rules no personality of the fakes has, in words of their own.
func TestModelsTestOtherForms(t *testing.T) {
	assistant := func(body []byte, member string) bool {
		var r struct{ Messages []map[string]json.RawMessage }
		_ = json.Unmarshal(body, &r)
		return slices.ContainsFunc(r.Messages, func(m map[string]json.RawMessage) bool { return string(m["role"]) == `"assistant"` && m[member] != nil })
	}
	for name, c := range map[string]struct {
		refuse func(body []byte) string
		want   string
		fits   bool
		code   int
	}{
		"no stream options and no reasoning": {func(body []byte) string {
			if bytes.Contains(body, []byte("stream_options")) || assistant(body, "reasoning_content") || assistant(body, "reasoning") {
				return "no such thing here, sk-lab-0123456789"
			}
			return ""
		}, "", false, 1},
		"no reasoning": {func(body []byte) string {
			if assistant(body, "reasoning_content") || assistant(body, "reasoning") {
				return "we think alone"
			}
			return ""
		}, "xai", true, 0},
		"the new limit only": {func(body []byte) string {
			if bytes.Contains(body, []byte(`"max_tokens"`)) {
				return "say max_completion_tokens"
			}
			return ""
		}, "openai", true, 0},
		"no calls in a history": {func(body []byte) string {
			if assistant(body, "tool_calls") {
				return "no\x1b[31m history of calls"
			}
			return ""
		}, "", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := startTested(t, llmtest.OpenAI(), func(_ *http.Request, body []byte) (int, string) {
				if words := c.refuse(body); words != "" {
					return http.StatusUnprocessableEntity, words
				}
				return 0, ""
			}).workplace(t, "openai-compatible", "")
			report := w.testModel("lab:some-model", c.code)
			if p := report.Profile; p.Name != c.want || p.Fits != c.fits || len(p.Refusals) == 0 || strings.Contains(p.Refusals[0], "sk-lab") || strings.Contains(p.Refusals[0], "\x1b") {
				t.Errorf("%+v\n%+v", p, report.Steps)
			}
		})
	}
}

func TestModelsTestWithoutTools(t *testing.T) {
	m := startTested(t, llmtest.OpenAI(), func(_ *http.Request, body []byte) (int, string) {
		if bytes.Contains(body, []byte(`"tools"`)) {
			return http.StatusBadRequest, "this deployment knows no functions"
		}
		return 0, ""
	})
	w := m.workplace(t, "openai-compatible", ", models: [talker, {name: silent, supports_function_calling: false}]")
	r := w.run("models", "test", "lab:talker", "--yes")
	for _, want := range []string{
		"✗ tool call          bad request (400): this deployment knows no functions\n", "→ tools do not work with this model", "– second round       not tried without: tool call\n",
		"✓ structured answer", "These do not work: tool call.", "profile: not found",
	} {
		if !strings.Contains(r.out, want) {
			t.Errorf("the output lacks %q:\n%s", want, r.out)
		}
	}
	if r.code != 1 {
		t.Errorf("exit code %d", r.code)
	}
	if report := w.testModel("lab:silent", 0); report.statusOf("tool") != "untested" || report.statusOf("schema") != "yes" || !report.Works || report.Most.Requests != 5 {
		t.Errorf("%+v", report)
	}
}

// A wrong key, a server that does not answer and one that is not there are one message, not one for each step.
func TestModelsTestEnds(t *testing.T) {
	refuse := func(status int, words string) func(*http.Request, []byte) (int, string) {
		return func(*http.Request, []byte) (int, string) { return status, words }
	}
	silent := func(r *http.Request, _ []byte) (int, string) {
		<-r.Context().Done()
		return http.StatusTeapot, ""
	}
	for name, c := range map[string]struct {
		refuse func(*http.Request, []byte) (int, string)
		code   int
		want   string
	}{
		"key":    {refuse(http.StatusUnauthorized, "no such key: sk-lab-0123456789"), 4, `The key of client "lab"`},
		"quota":  {refuse(http.StatusTooManyRequests, "come back tomorrow"), 1, "rate limit (429)"},
		"silent": {silent, 1, "request timed out: 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			m := startTested(t, llmtest.OpenAI(), c.refuse)
			w := m.workplace(t, "openai-compatible", "")
			r := w.run("models", "test", "lab:some-model", "--yes")
			if r.code != c.code || !strings.Contains(r.err, c.want) || r.out != "" || strings.Contains(r.err, "sk-lab") || m.count() != 1 {
				t.Errorf("%d requests, %+v", m.count(), r)
			}
			if report := w.testModel("lab:some-model", c.code); report.Works || report.Error == "" || len(report.Steps) != 0 {
				t.Errorf("%+v", report)
			}
		})
	}
	w := newWorkplace(t, "")
	for _, c := range []struct {
		model, want string
		code        int
	}{{"openai:gpt-5.4", "OPENAI_API_KEY", 4}, {"script:x.yaml", "", 2}, {"nobody:x", "nobody", 2}, {"openai:a,groq:b", "several models", 2}} {
		if r := w.run("models", "test", c.model, "--yes"); r.code != c.code || !strings.Contains(r.err, c.want) {
			t.Errorf("%s: %+v", c.model, r)
		}
	}
}

// Nothing is sent without a yes, and the question says what it costs.
func TestModelsTestAsks(t *testing.T) {
	m := startTested(t, llmtest.OpenAI(), nil)
	w := m.workplace(t, "openai-compatible", ", models: [{name: dear, input_price: 100, output_price: 1000}, unknown]")
	r := w.run("models", "test", "lab:dear")
	if r.code != 2 || !strings.Contains(r.err, "--yes") || !strings.Contains(r.err, "at most $") || m.count() != 0 {
		t.Errorf("%d requests, %+v", m.count(), r)
	}
	if r := w.run("models", "test", "lab:unknown"); !strings.Contains(r.err, "the price of the model is not known") {
		t.Errorf("%+v", r)
	}
	s := w.screen(nil, "models", "test", "lab:dear")
	s.await("Send it?")
	s.answer(down, enter)
	s.ends(1, "nothing was sent")
	s = w.screen(nil, "models", "test", "lab:dear")
	s.await("Send it?")
	s.answer(ctrlC)
	s.ends(130, "")
	if m.count() != 0 {
		t.Errorf("%d requests", m.count())
	}
	s = w.screen(nil, "models", "test", "lab:dear")
	s.await("Send it?")
	s.answer(enter)
	s.ends(0, "| yes | yes | `reasoning_content` |")
}

// Ctrl-C ends a test at once.
func TestModelsTestInterrupted(t *testing.T) {
	began := make(chan struct{}, 10)
	m := startTested(t, llmtest.OpenAI(), func(r *http.Request, _ []byte) (int, string) {
		began <- struct{}{}
		<-r.Context().Done()
		return http.StatusTeapot, ""
	})
	w := newWorkplace(t, "-- .config/raddle/config.yaml --\nclients: [{name: lab, type: openai-compatible, api_base: '"+m.url+"'}]\n")
	s := w.screen(nil, "models", "test", "lab:x", "--yes")
	<-began
	s.await("… streamed answer")
	_ = s.cmd.Process.Signal(syscall.SIGINT)
	s.ends(130, "")
	s.seen.until(t, "the end of the live line", func(all string) bool {
		text := termtest.Render(columns, all)
		return !strings.Contains(text, "streamed answer") && !strings.Contains(text, "The row")
	})
}

// Lines fit on narrow terminals, except for the row, which is copied.
func TestModelsTestFits(t *testing.T) {
	var deepSeek llmtest.Vendor
	for _, v := range llmtest.CompatibleServers() {
		if v.Name == "deepseek" {
			deepSeek = v.WithLacks()
		}
	}
	w := startTested(t, deepSeek, nil).workplace(t, "openai-compatible", "")
	for _, cols := range []int{40, 60, 80} {
		written, shown := w.show(cols, "models", "test", "lab:some-model", "--yes", "--color", "never")
		for line := range strings.Lines(written) {
			line = line[strings.LastIndex(line, "\x1b[J")+1:] // the live line before it is gone
			line = strings.TrimRight(strings.TrimPrefix(line, "[J"), "\r\n")
			if term.TextWidth(line) > cols && !strings.HasPrefix(line, "| deepseek |") {
				t.Errorf("%d columns: %q", cols, line)
			}
		}
		if !strings.Contains(shown, "✗ picture            bad") || strings.Contains(shown, "…") {
			t.Errorf("%d columns:\n%s", cols, shown)
		}
	}
}
