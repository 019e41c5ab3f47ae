package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// OpenAIResponses is OpenAI's Responses API with a model that reasons, for a conversation that is not stored. What it
// refuses, and where that is known from:
//
//   - An id of an item: "Item with id 'rs_…' not found. Items are not persisted when `store` is set to false" (vercel/ai#7543, can1357/oh-my-pi#41).
//   - Reasoning without its encrypted content, or with one that it has not made: "The encrypted content … could not be verified"
//     (openai/codex#8119), and reasoning that no item follows: "reasoning was provided without its required following item".
//   - Calls without an output and outputs without a call: "No tool output found for function call …".
//   - temperature and top_p while it reasons: "Unsupported parameter … with this model". stop, max_tokens, messages: "Unknown parameter".
//   - max_output_tokens below 16: "integer below minimum value".
//   - Tools in the form of chat completions, and a strict tool (strict is true if it is left out) whose schema leaves a property out of required:
//     "Invalid schema for function …" (openai/openai-openapi, FunctionTool).
//   - reasoning.summary of an organisation that is not verified (continuedev/continue#12047, BerriAI/litellm#16032).
//   - phase on a message that is not the assistant's. That phase comes back is not required, but models of today work worse without it
//     (documentation of openai.responses, MessagePhase).
//
// It streams events of kinds that a client does not know, items of kinds that it does not know, and a reply in several
// phases.
func OpenAIResponses() Vendor {
	return Vendor{Name: "OpenAI responses", Check: checkResponses, stream: streamResponses, admit: admitPath("/responses"), refuse: refuseOpenAI}
}

// admitPath admits requests to one path.
func admitPath(end string) func(*http.Request) (int, string) {
	return func(r *http.Request) (int, string) {
		if !strings.HasSuffix(r.URL.Path, end) {
			return http.StatusNotFound, "Invalid URL (POST " + r.URL.Path + ")"
		}
		return 0, ""
	}
}

func refuseOpenAI(message string) string {
	return `{"error":{"message":` + quoteJSON(message) + `,"type":"invalid_request_error","param":null,"code":null}}`
}

// sealOf returns the encrypted content that stands for a thought.
func sealOf(thought string) string {
	return "gAAAA" + base64.StdEncoding.EncodeToString([]byte("seal of "+thought))
}

func isSeal(text string) bool {
	data, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "gAAAA"))
	return err == nil && strings.HasPrefix(text, "gAAAA") && strings.HasPrefix(string(data), "seal of ")
}

type responsesItem struct {
	Type, ID, Role, Phase, Name, Arguments string
	CallID                                 string `json:"call_id"`
	Content, Output, Summary               json.RawMessage
	EncryptedContent                       string `json:"encrypted_content"`
}

func checkResponses(body []byte) error {
	var r struct {
		Model, Instructions string
		Input               []responsesItem
		Tools               []json.RawMessage
		Text                json.RawMessage
		Reasoning           struct{ Effort, Summary string }
		Include             []string
		Temperature, TopP   *float64
		MaxOutputTokens     *int   `json:"max_output_tokens"`
		PromptCacheKey      string `json:"prompt_cache_key"`
		Store               *bool
		Stream              bool
	}
	var fields map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(body, &r), json.Unmarshal(body, &fields)); err != nil {
		return err
	}
	known := []string{"model", "instructions", "input", "tools", "text", "reasoning", "include", "temperature", "top_p", "max_output_tokens", "prompt_cache_key", "store", "stream", "parallel_tool_calls"}
	for name := range fields {
		if !slices.Contains(known, name) {
			return vendorErrorf("Unknown parameter: '%s'.", name)
		}
	}
	plain := strings.HasPrefix(r.Model, "gpt-4") || strings.HasPrefix(r.Model, "gpt-3") // it does not reason
	switch {
	case r.Model == "" || len(r.Input) == 0:
		return errors.New("model and input are required")
	case r.Store == nil || *r.Store:
		return errors.New("the conversation would be stored at the provider")
	case plain && len(r.Include) > 0:
		return vendorError("Encrypted content is not supported with this model.")
	case plain && len(r.Reasoning.Effort) > 0:
		return vendorError("Unsupported parameter: 'reasoning.effort' is not supported with this model.")
	case !plain && !slices.Contains(r.Include, "reasoning.encrypted_content"):
		return errors.New("the reasoning would be lost: include lacks reasoning.encrypted_content")
	case !plain && r.Reasoning.Effort != "none" && (fields["temperature"] != nil || fields["top_p"] != nil):
		return vendorError("Unsupported parameter: 'temperature' is not supported with this model.")
	case r.MaxOutputTokens != nil && *r.MaxOutputTokens < 16:
		return vendorError("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16.")
	case r.Reasoning.Summary != "":
		return vendorError("Your organization must be verified to generate reasoning summaries.")
	case r.Reasoning.Effort != "" && !slices.Contains([]string{"none", "minimal", "low", "medium", "high", "xhigh"}, r.Reasoning.Effort):
		return vendorErrorf("Invalid value: '%s'. Supported values are: 'none', 'minimal', 'low', 'medium', 'high', and 'xhigh'.", r.Reasoning.Effort)
	}
	for i, tool := range r.Tools {
		if err := checkResponsesTool(tool); err != nil {
			return fmt.Errorf("tools[%d]: %w", i, err)
		}
	}
	if err := checkStrict(body); err != nil {
		return err
	}
	return checkResponsesInput(r.Input)
}

func checkResponsesTool(raw json.RawMessage) error {
	var tool struct {
		Type, Name string
		Function   json.RawMessage
		Strict     *bool
		Parameters struct {
			Type       string
			Properties map[string]json.RawMessage
			Required   []string
		}
	}
	if err := json.Unmarshal(raw, &tool); err != nil {
		return err
	}
	switch {
	case len(tool.Function) > 0 || tool.Type != "function" || !isPlainName(tool.Name, 64):
		return vendorError("Missing required parameter: 'tools[0].name'.")
	case tool.Parameters.Type != "object":
		return vendorErrorf("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'", tool.Name)
	case (tool.Strict == nil || *tool.Strict) && len(tool.Parameters.Required) < len(tool.Parameters.Properties):
		return vendorErrorf("Invalid schema for function '%s': 'required' is required to be supplied and to be an array including every key in properties", tool.Name)
	}
	return nil
}

// checkResponsesInput requires each call to have one output that follows it, and each piece of reasoning to be followed
// by what it led to.
func checkResponsesInput(items []responsesItem) error {
	calls := map[string]bool{} // true: it has its output
	for i, item := range items {
		if item.ID != "" {
			return vendorErrorf("Item with id '%s' not found. Items are not persisted when `store` is set to false.", item.ID)
		}
		if item.Phase != "" && item.Role != "assistant" {
			return fmt.Errorf("input[%d]: phase is for messages of the assistant", i)
		}
		var err error
		switch item.Type {
		case "message", "":
			err = item.checkContent()
		case "reasoning":
			var summary []json.RawMessage
			follows := i+1 < len(items) && (items[i+1].Type == "function_call" || items[i+1].Role == "assistant" || items[i+1].Type == "web_search_call")
			switch {
			case item.Summary == nil || json.Unmarshal(item.Summary, &summary) != nil:
				err = vendorError("Missing required parameter: 'summary'.")
			case !isSeal(item.EncryptedContent):
				err = vendorError("The encrypted content could not be verified.")
			case !follows:
				err = vendorError("Item of type 'reasoning' was provided without its required following item.")
			}
		case "function_call":
			_, twice := calls[item.CallID]
			if twice || item.CallID == "" || len(item.CallID) > 64 || !isPlainName(item.Name, 64) || !isJSONObject([]byte(item.Arguments)) {
				err = fmt.Errorf("the call %+v is not valid", item)
			}
			calls[item.CallID] = false
		case "function_call_output":
			has, known := calls[item.CallID]
			if !known || has {
				err = vendorErrorf("No tool call found for function call output with call_id %s.", item.CallID)
			} else {
				err = checkOutput(item.Output)
			}
			calls[item.CallID] = true
		case "web_search_call":
		default:
			err = vendorErrorf("Invalid value: '%s'.", item.Type)
		}
		if err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	for id, has := range calls {
		if !has {
			return vendorErrorf("No tool output found for function call %s.", id)
		}
	}
	return nil
}

// inputParts are the kinds of content that a user and a tool may send.
var inputParts = []string{"input_text", "input_image", "input_file"}

func (m responsesItem) checkContent() error {
	var text string
	var parts []struct {
		Type, Text, Filename string
		ImageURL             json.RawMessage `json:"image_url"`
		FileData             string          `json:"file_data"`
		FileURL              string          `json:"file_url"`
	}
	allowed := inputParts
	switch m.Role {
	case "assistant":
		allowed = []string{"output_text", "refusal"}
	case "user", "developer", "system":
	default:
		return vendorErrorf("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", m.Role)
	}
	if json.Unmarshal(m.Content, &text) == nil {
		return nil
	}
	if err := json.Unmarshal(m.Content, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		switch {
		case !slices.Contains(allowed, p.Type):
			return vendorErrorf("Invalid value: '%s' in a message of %s.", p.Type, m.Role)
		case p.Type == "input_image" && !bytes.HasPrefix(p.ImageURL, []byte(`"`)):
			return vendorError("Invalid type for 'image_url': expected a string")
		case p.Type == "input_file" && (p.FileData == "") == (p.FileURL == ""), p.FileData != "" && p.Filename == "":
			return vendorError("Missing required parameter: 'filename' or its file.")
		}
	}
	return nil
}

func checkOutput(raw json.RawMessage) error {
	var text string
	var parts []struct{ Type string }
	if json.Unmarshal(raw, &text) == nil {
		return nil
	}
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return vendorErrorf("Invalid output: %s", raw)
	}
	for _, p := range parts {
		if !slices.Contains(inputParts, p.Type) {
			return vendorErrorf("Invalid value: '%s' in an output.", p.Type)
		}
	}
	return nil
}

// responsesStream writes the events of one response.
type responsesStream struct {
	text   strings.Builder
	number int
	output []string
}

// send writes an event. members are those of its data, without the type.
func (s *responsesStream) send(kind, members string) {
	fmt.Fprintf(&s.text, "event: %s\ndata: {\"type\":%q,\"sequence_number\":%d,%s}\n\n", kind, kind, s.number, members)
	s.number++
}

// item writes the events of one item of the output: open begins it, deltas follow, and done is the whole.
func (s *responsesStream) item(open string, deltas [][2]string, done string) {
	at := fmt.Sprintf(`"output_index":%d,`, len(s.output))
	s.send("response.output_item.added", at+`"item":`+open)
	for _, d := range deltas {
		s.send(d[0], at+d[1])
	}
	s.send("response.output_item.done", at+`"item":`+done)
	s.output = append(s.output, done)
}

func streamResponses(t Turn) string {
	var s responsesStream
	s.send("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-x-1","error":null,"output":[]}`)
	s.send("response.in_progress", `"response":{"id":"resp_1","status":"in_progress"}`)
	if t.Thought != "" {
		var deltas [][2]string
		deltas = append(deltas, [2]string{"response.reasoning_summary_part.added", `"summary_index":0,"part":{"type":"summary_text","text":""}`})
		for _, half := range splitHalf(t.Thought) {
			deltas = append(deltas, [2]string{"response.reasoning_summary_text.delta", `"summary_index":0,"delta":` + quoteJSON(half)})
		}
		head := fmt.Sprintf(`{"id":"rs_%d","type":"reasoning","status":null,`, s.number)
		s.item(head+`"summary":[]}`, deltas, head+`"summary":[{"type":"summary_text","text":`+quoteJSON(t.Thought)+`}],"encrypted_content":`+quoteJSON(sealOf(t.Thought))+`}`)
	}
	if t.Text != "" {
		phase := "final_answer"
		if len(t.Calls) > 0 {
			phase = "commentary"
		}
		deltas := [][2]string{{"response.content_part.added", `"content_index":0,"part":{"type":"output_text","text":""}`}}
		for _, half := range splitHalf(t.Text) {
			deltas = append(deltas, [2]string{"response.output_text.delta", `"content_index":0,"delta":` + quoteJSON(half) + `,"obfuscation":"x"`})
		}
		head := fmt.Sprintf(`{"id":"msg_%d","type":"message","role":"assistant","phase":%q,`, s.number, phase)
		s.item(head+`"status":"in_progress","content":[]}`, deltas,
			head+`"status":"completed","content":[{"type":"output_text","annotations":[],"logprobs":[],"text":`+quoteJSON(t.Text)+`}]}`)
	}
	for _, c := range t.Calls {
		head := fmt.Sprintf(`{"id":"fc_%d","type":"function_call","call_id":%q,"name":%q,`, s.number, c.ID, c.Name)
		var deltas [][2]string
		for _, half := range splitHalf(c.Args) {
			deltas = append(deltas, [2]string{"response.function_call_arguments.delta", `"delta":` + quoteJSON(half)})
		}
		s.item(head+`"status":"in_progress","arguments":""}`, deltas, head+`"status":"completed","arguments":`+quoteJSON(c.Args)+`}`)
	}
	s.send("response.something_new", `"delta":{"of":"another form"}`)
	end := "completed"
	details := "null"
	if t.Cut {
		end = "incomplete"
		details = `{"reason":"max_output_tokens"}`
	}
	s.send("response."+end, `"response":{"id":"resp_1","object":"response","status":"`+end+`","model":"gpt-x-1","error":null,"incomplete_details":`+details+
		`,"output":[`+strings.Join(s.output, ",")+`],"usage":{"input_tokens":100,"input_tokens_details":{"cached_tokens":40,"cache_write_tokens":8},"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":120}}`)
	return s.text.String()
}
