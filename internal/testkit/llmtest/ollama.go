package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
)

// ollamaWindow is the window of the model of [Ollama] in tokens, and ollamaLimit the size of a conversation in bytes
// above which it does not fit into one of 8,192 tokens.
const (
	ollamaWindow = 40_960
	ollamaLimit  = 32_000
)

// Ollama is Ollama's own API (github.com/ollama/ollama, api/types.go and server/routes.go of August 2026) with a model
// that thinks. What it refuses, and what it is strict about where the real server is silently wrong:
//
//   - Arguments of calls that are a text: "cannot unmarshal string into Go struct field" (types.go, ToolCallFunctionArguments).
//   - Pictures that are not base64, and content that is a list: Message.Content is a text.
//   - A conversation that does not fit into num_ctx, if truncate is false: "the input length exceeds the context length" (llm/llama_server.go).
//     With truncate, and without num_ctx, the real server cuts it without a word, to 4,096 tokens on most machines (docs/context-length.mdx); this
//     one refuses both.
//   - think with a value that it does not know: "invalid think value" (types.go, ThinkValue).
//   - /v1/chat/completions: this server has its own API only.
//
// It answers in lines of JSON, whole calls at once, without ids of the calls, as models with a template of their own
// do.
func Ollama() Vendor {
	return Vendor{Name: "Ollama", Check: checkOllama, stream: streamOllama, media: "application/x-ndjson", admit: admitOllama, serve: showOllama, refuse: func(m string) string {
		return `{"error":` + quoteJSON(m) + `}`
	}}
}

func admitOllama(r *http.Request) (int, string) {
	if r.Method != http.MethodPost || r.URL.Path != "/api/chat" && r.URL.Path != "/api/show" {
		return http.StatusNotFound, "404 page not found"
	}
	return 0, ""
}

// showOllama answers requests for the description of the model.
func showOllama(w http.ResponseWriter, r *http.Request, body []byte) bool {
	if r.URL.Path != "/api/show" {
		return false
	}
	var asked struct{ Model string }
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	if json.Unmarshal(body, &asked) != nil || asked.Model == "" || asked.Model == "gone" {
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":"model '`+asked.Model+`' not found"}`)
		return true
	}
	fmt.Fprintf(w, `{"license":%s,"model_info":{"general.architecture":"qwen3","qwen3.context_length":%d},"capabilities":["completion","tools","thinking","vision"]}`, quoteJSON(strings.Repeat("x", 100_000)), ollamaWindow)
	return true
}

type ollamaMessage struct {
	Role, Content, Thinking string
	Images                  [][]byte
	ToolCalls               []struct {
		ID       string
		Function struct {
			Name      string
			Arguments map[string]json.RawMessage
		}
	} `json:"tool_calls"`
	ToolName string `json:"tool_name"`
	CallID   string `json:"tool_call_id"`
}

func checkOllama(body []byte) error {
	var r struct {
		Model    string
		Messages []ollamaMessage
		Options  struct {
			NumCtx int `json:"num_ctx"`
		}
		Think    any
		Truncate *bool
		Shift    *bool
		Stream   *bool
		Tools    []struct {
			Type     string
			Function struct {
				Name       string
				Parameters struct{ Type string }
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	switch {
	case r.Model == "" || len(r.Messages) == 0:
		return vendorError("model and messages are required")
	case r.Truncate == nil || *r.Truncate || r.Shift == nil || *r.Shift:
		return vendorError("the conversation would be cut without a word")
	case r.Options.NumCtx <= 0 || r.Options.NumCtx > ollamaWindow:
		return vendorErrorf("num_ctx is %d", r.Options.NumCtx)
	case r.Options.NumCtx <= 8192 && len(body) > ollamaLimit:
		return vendorError("the input length exceeds the context length")
	case !slices.Contains([]any{nil, true, false, "low", "medium", "high", "max"}, r.Think):
		return vendorErrorf("invalid think value: %v", r.Think)
	}
	for _, t := range r.Tools {
		if t.Type != "function" || t.Function.Name == "" || t.Function.Parameters.Type != "object" {
			return vendorError("a tool is not a function with parameters")
		}
	}
	return checkOllamaMessages(r.Messages)
}

// checkOllamaMessages requires the results of calls to follow them, in their order and with their names, because
// templates print them so.
func checkOllamaMessages(list []ollamaMessage) error {
	var open []string
	for i, m := range list {
		if m.Role != "tool" && len(open) > 0 {
			return vendorErrorf("messages[%d]: the calls of %v have no result", i, open)
		}
		switch m.Role {
		case "system", "user":
		case "assistant":
			for _, c := range m.ToolCalls {
				if !isPlainName(c.Function.Name, 64) || c.Function.Arguments == nil {
					return vendorErrorf("messages[%d]: a call of %q without arguments", i, c.Function.Name)
				}
				open = append(open, c.Function.Name)
			}
		case "tool":
			if len(open) == 0 || m.ToolName != open[0] {
				return vendorErrorf("messages[%d]: a result of %q, where %v are open", i, m.ToolName, open)
			}
			open = open[1:]
		default:
			return vendorErrorf("messages[%d]: unknown role %q", i, m.Role)
		}
		if len(m.Images) > 0 && m.Role != "user" {
			return vendorErrorf("messages[%d]: a message of the role %s has pictures", i, m.Role)
		}
	}
	return nil
}

func streamOllama(turn Turn) string {
	var b strings.Builder
	line := func(message, more string) {
		fmt.Fprintf(&b, `{"model":"qwen3:8b","created_at":"2026-08-21T10:00:00Z","message":{"role":"assistant","content":""%s},"done":false%s}`+"\n", message, more)
	}
	line("", "")
	if turn.Thought != "" {
		for _, half := range splitHalf(turn.Thought) {
			line(`,"thinking":`+quoteJSON(half), "")
		}
	}
	if turn.Text != "" {
		for _, half := range splitHalf(turn.Text) {
			fmt.Fprintf(&b, `{"model":"qwen3:8b","created_at":"2026-08-21T10:00:00Z","message":{"role":"assistant","content":%s},"done":false}`+"\n", quoteJSON(half))
		}
	}
	for i, c := range turn.Calls {
		args := c.Args
		if args == "" {
			args = "{}"
		}
		line(fmt.Sprintf(`,"tool_calls":[{"function":{"index":%d,"name":%s,"arguments":%s}}]`, i, quoteJSON(c.Name), args), "")
	}
	reason := "stop"
	if turn.Cut {
		reason = "length"
	}
	fmt.Fprintf(&b, `{"model":"qwen3:8b","created_at":"2026-08-21T10:00:00Z","message":{"role":"assistant","content":""},"done":true,"done_reason":%q,"total_duration":5,"prompt_eval_count":10,"eval_count":5}`+"\n", reason)
	return b.String()
}
