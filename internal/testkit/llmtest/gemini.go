package llmtest

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// Gemini is the content generation API of Google's Gemini.
func Gemini() Vendor {
	return Vendor{Name: "Gemini", Check: checkGemini, stream: streamGemini, refuse: func(m string) string {
		return `{"error":{"code":400,"message":` + quoteJSON(m) + `,"status":"INVALID_ARGUMENT"}}`
	}}
}

type geminiContent struct {
	Role  string
	Parts []struct {
		Text         *string
		InlineData   json.RawMessage
		FileData     json.RawMessage
		ToolCall     json.RawMessage
		ToolResponse json.RawMessage
		FunctionCall *struct {
			Name string
			Args json.RawMessage
		}
		FunctionResponse *struct {
			Name     string
			Response json.RawMessage
		}
	}
}

// checkGemini requires users and the model to take turns, and a turn with calls to be
// followed by a turn with as many responses, with the same names in the same order.
func checkGemini(body []byte) error {
	var r struct{ Contents []geminiContent }
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	if len(r.Contents) == 0 {
		return errors.New("contents are not specified")
	}
	var open []string
	for i, c := range r.Contents {
		if want := []string{"user", "model"}[i%2]; c.Role != want {
			return fmt.Errorf("contents[%d]: multiturn requests alternate between user and model: %q where %q is due", i, c.Role, want)
		}
		calls, responses, err := c.functionNames()
		if err != nil {
			return fmt.Errorf("contents[%d]: %w", i, err)
		}
		if fmt.Sprint(responses) != fmt.Sprint(open) {
			return fmt.Errorf("contents[%d]: the function response parts %v do not match the function call parts %v of the turn before", i, responses, open)
		}
		open = calls
	}
	if len(open) > 0 {
		return fmt.Errorf("the function calls %v have no response", open)
	}
	return nil
}

// functionNames returns the names that a turn calls, and those that it responds to.
func (c geminiContent) functionNames() (calls, responses []string, err error) {
	if len(c.Parts) == 0 {
		return nil, nil, errors.New("parts must not be empty")
	}
	for i, p := range c.Parts {
		switch {
		case p.FunctionCall != nil:
			if c.Role != "model" || !isFunctionName(p.FunctionCall.Name) || !isJSONObject(p.FunctionCall.Args) {
				return nil, nil, fmt.Errorf("parts[%d]: the function call is not valid", i)
			}
			calls = append(calls, p.FunctionCall.Name)
		case p.FunctionResponse != nil:
			if c.Role != "user" || len(responses) != i || !isJSONObject(p.FunctionResponse.Response) {
				return nil, nil, fmt.Errorf("parts[%d]: the function response is not valid, or not at the beginning", i)
			}
			responses = append(responses, p.FunctionResponse.Name)
		case (p.Text == nil || *p.Text == "") && p.InlineData == nil && p.FileData == nil && p.ToolCall == nil && p.ToolResponse == nil:
			return nil, nil, fmt.Errorf("parts[%d]: the part holds no data", i)
		}
	}
	return calls, responses, nil
}

// isFunctionName reports whether Google accepts the name of a function.
func isFunctionName(name string) bool {
	rest := strings.NewReplacer(".", "", ":", "").Replace(name)
	return len(name) <= 64 && isPlainName(rest, 64) && !strings.ContainsAny(name[:1], ".:-0123456789")
}

// streamGemini adds a signature to the first call only, as the vendor does for parallel
// calls, and sends no ids.
func streamGemini(t Turn) string {
	var b strings.Builder
	send := func(parts, finish string) {
		fmt.Fprintf(&b, `data: {"candidates":[{"content":{"role":"model","parts":[%s]}%s}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4},"modelVersion":"gemini-x"}`+"\r\n\r\n", parts, finish)
	}
	if t.Thought != "" {
		send(`{"thought":true,"text":`+quoteJSON(t.Thought)+`}`, "")
	}
	if h := splitHalf(t.Text); t.Text != "" {
		send(`{"text":`+quoteJSON(h[0])+`}`, "")
		send(`{"text":`+quoteJSON(h[1])+`}`, "")
	}
	for i, c := range t.Calls {
		seal := ""
		if i == 0 {
			seal = `,"thoughtSignature":` + quoteJSON(base64.StdEncoding.EncodeToString([]byte("seal of "+c.Name)))
		}
		args := `,"args":` + cmp.Or(c.Args, "{}")
		if t.Cut && !json.Valid([]byte(c.Args)) {
			args = "" // the vendor never sends a part of an object
		}
		send(fmt.Sprintf(`{"functionCall":{"name":%q%s}%s}`, c.Name, args, seal), "")
	}
	finish := "STOP"
	if t.Cut {
		finish = "MAX_TOKENS"
	}
	send(`{"text":""}`, `,"finishReason":"`+finish+`"`)
	return b.String()
}
