package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// A strictServer speaks the wire of chat completions and refuses histories that
// the strictest providers refuse.
type strictServer struct {
	t       testing.TB
	url     string
	answer  func(w http.ResponseWriter, r *http.Request, messages []wireMessage) // after the history was found valid
	mu      sync.Mutex
	bodies  []string
	refused []string
}

type wireMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"`
	ID      string `json:"tool_call_id"`
	Calls   []struct {
		ID       string `json:"id"`
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m wireMessage) text() string { s, _ := m.Content.(string); return s }

func strict(t testing.TB, answer func(w http.ResponseWriter, r *http.Request, messages []wireMessage)) *strictServer {
	s := &strictServer{t: t, answer: answer}
	h := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(h.Close)
	s.url = h.URL
	return s
}

func (s *strictServer) model() llm.Model {
	m, err := openai.New(openai.Config{Model: "strict", Endpoint: llm.Endpoint{BaseURL: s.url + "/v1"}})
	if err != nil {
		s.t.Fatal(err)
	}
	return m
}

func (s *strictServer) serve(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Messages []wireMessage `json:"messages"`
	}
	raw, err := io.ReadAll(r.Body)
	if err == nil {
		err = json.Unmarshal(raw, &body)
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	fault := invalid(body.Messages)
	s.mu.Lock()
	s.bodies = append(s.bodies, string(raw))
	if fault != "" {
		s.refused = append(s.refused, fault+"\n"+string(raw))
	}
	s.mu.Unlock()
	if fault != "" {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error"}}`, fault)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	s.answer(w, r, body.Messages)
}

// invalid says what a strict provider has against a history, or nothing.
func invalid(messages []wireMessage) string {
	var open []string // calls without an outcome, in order
	last := ""
	for i, m := range messages {
		if len(open) > 0 && m.Role != "tool" {
			return fmt.Sprintf("message %d: an assistant message with tool_calls must be followed by tool messages for %v", i, open)
		}
		switch m.Role {
		case "system":
			if i > 0 {
				return fmt.Sprintf("message %d: the system message must be first", i)
			}
		case "user":
			if last == "user" {
				return fmt.Sprintf("message %d: roles must alternate", i)
			}
			if m.text() == "" {
				return fmt.Sprintf("message %d: content must be a text that is not empty", i)
			}
		case "assistant":
			if last != "user" && last != "tool" {
				return fmt.Sprintf("message %d: roles must alternate", i)
			}
			if m.text() == "" && len(m.Calls) == 0 {
				return fmt.Sprintf("message %d: content must not be empty", i)
			}
			seen := map[string]bool{}
			for _, c := range m.Calls {
				var args map[string]any
				if json.Unmarshal([]byte(c.Function.Arguments), &args) != nil || c.ID == "" || seen[c.ID] {
					return fmt.Sprintf("message %d: the call %q is not valid", i, c.ID)
				}
				seen[c.ID] = true
				open = append(open, c.ID)
			}
		case "tool":
			if len(open) == 0 || open[0] != m.ID {
				return fmt.Sprintf("message %d: the outcome of %q belongs to no call; open are %v", i, m.ID, open)
			}
			open = open[1:]
		}
		last = m.Role
	}
	switch {
	case len(open) > 0:
		return fmt.Sprintf("the calls %v have no outcome", open)
	case last != "user" && last != "tool":
		return "the last message must be the user's or a tool's"
	}
	return ""
}

// check fails the test if a request was refused.
func (s *strictServer) check() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.refused {
		s.t.Errorf("the server refused a history: %s", f)
	}
}

// stream sends chunks of a reply.
func stream(w http.ResponseWriter, chunks ...string) {
	for _, c := range chunks {
		_, _ = io.WriteString(w, "data: "+c+"\n\n") // a client that has left is no concern of the server's
		_ = http.NewResponseController(w).Flush()
	}
}

func textChunk(text string) string {
	return fmt.Sprintf(`{"id":"r","model":"strict","choices":[{"index":0,"delta":{"role":"assistant","content":%q}}]}`, text)
}

func endChunks(reason string) []string {
	return []string{fmt.Sprintf(`{"id":"r","model":"strict","choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason),
		`{"id":"r","model":"strict","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`, "[DONE]"}
}

// saying answers with a text.
func saying(w http.ResponseWriter, text string) {
	stream(w, append([]string{textChunk(text)}, endChunks("stop")...)...)
}

// calling answers with calls, given as names and arguments.
func calling(w http.ResponseWriter, pairs ...string) {
	var list []string
	for i := 0; i+1 < len(pairs); i += 2 {
		list = append(list, fmt.Sprintf(`{"index":%d,"id":"call_%d","type":"function","function":{"name":%q,"arguments":%q}}`, i/2, i/2, pairs[i], pairs[i+1]))
	}
	chunk := `{"id":"r","model":"strict","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[` + strings.Join(list, ",") + `]}}]}`
	stream(w, append([]string{chunk}, endChunks("tool_calls")...)...)
}
