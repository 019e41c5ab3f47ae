package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// SearchedPage is the page that the vendors of [Searching] find.
const SearchedPage = "https://example.org/horses"

// Searching returns Anthropic, Gemini or OpenAI's Responses API as a vendor that searches the web by itself in a turn
// with the text "search", and answers "Found it." with a citation. Anthropic pauses that turn in its middle. What the
// vendors refuse, and where that is known from:
//
//   - OpenAI refuses an unknown type of tool, and a call of the interpreter without a container ("Missing required parameter: 'tools[0].container'").
//   - Anthropic requires that a call of its own tool is followed by its outcome in the same message, unless the message is the last one, of a turn that
//     it has paused (laravel/ai#493), and that encrypted contents and the indexes of citations come back as they came (strands-agents/harness-sdk#3568).
//   - Google refuses its own tools together with functions: "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with
//     Function calling" (cloudwego/eino-ext#761, strands-agents/harness-sdk#3639), and needs its calls and their outcomes back with their signatures.
func Searching(v Vendor) Vendor {
	check := v.Check
	stream := v.stream
	own := map[string]struct {
		check  func(body []byte) error
		stream func(Turn) string
	}{
		"OpenAI responses": {checkResponsesSearch, streamResponsesSearch}, "Anthropic": {checkAnthropicSearch, streamAnthropicSearch}, "Gemini": {checkGeminiSearch, streamGeminiSearch},
	}[v.Name]
	v.Check = func(body []byte) error { return errors.Join(own.check(body), check(body)) }
	if v.Name == "OpenAI responses" { // its own check knows functions only
		v.Check = own.check
	}
	v.stream = func(t Turn) string {
		if t.Text == "search" || t.Text == "continue" {
			return own.stream(t)
		}
		return stream(t)
	}
	return v
}

func checkResponsesSearch(body []byte) error {
	var r struct {
		Tools []json.RawMessage
		Input []responsesItem
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	for i, raw := range r.Tools {
		var t struct {
			Type      string
			Container json.RawMessage
		}
		if err := json.Unmarshal(raw, &t); err != nil {
			return err
		}
		switch {
		case t.Type == "function":
			if err := checkResponsesTool(raw); err != nil {
				return err
			}
		case t.Type == "web_search":
		case t.Type == "code_interpreter" && len(t.Container) > 0:
		default:
			return vendorErrorf("Invalid value: '%s' for tools[%d].", t.Type, i)
		}
	}
	return checkResponsesInput(r.Input)
}

func streamResponsesSearch(Turn) string {
	var s responsesStream
	s.send("response.created", `"response":{"id":"resp_1","object":"response","status":"in_progress","model":"gpt-x-1","error":null,"output":[]}`)
	s.item(`{"id":"ws_1","type":"web_search_call","status":"in_progress"}`, [][2]string{{"response.web_search_call.searching", `"item_id":"ws_1"`}},
		`{"id":"ws_1","type":"web_search_call","status":"completed","action":{"type":"search","query":"horses","queries":["horses","ponies"]}}`)
	s.item(`{"id":"ws_2","type":"web_search_call","status":"in_progress"}`, nil, `{"id":"ws_2","type":"web_search_call","status":"completed","action":{"type":"open_page","url":"`+SearchedPage+`"}}`)
	note := `{"type":"url_citation","start_index":0,"end_index":5,"url":"` + SearchedPage + `","title":"Horses"}`
	s.item(`{"id":"m_1","type":"message","role":"assistant","phase":"final_answer","status":"in_progress","content":[]}`,
		[][2]string{{"response.output_text.delta", `"content_index":0,"delta":"Found "`}, {"response.output_text.delta", `"content_index":0,"delta":"it."`}, {"response.output_text.annotation.added", `"content_index":0,"annotation_index":0,"annotation":` + note}},
		`{"id":"m_1","type":"message","role":"assistant","phase":"final_answer","status":"completed","content":[{"type":"output_text","annotations":[`+note+`],"text":"Found it."}]}`)
	s.send("response.completed", `"response":{"id":"resp_1","object":"response","status":"completed","model":"gpt-x-1","error":null,"output":[`+strings.Join(s.output, ",")+`],"usage":{"input_tokens":10,"output_tokens":5}}`)
	return s.text.String()
}

func checkAnthropicSearch(body []byte) error {
	var r struct {
		Tools    []struct{ Type, Name string }
		Messages []struct {
			Role    string
			Content []struct {
				Type, ID  string
				ToolUseID string `json:"tool_use_id"`
				Input     struct{ Query string }
				Content   json.RawMessage
				Citations []struct {
					Index string `json:"encrypted_index"`
				}
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	for i, m := range r.Messages {
		open := ""
		for _, b := range m.Content {
			switch {
			case b.Type == "server_tool_use" && (m.Role != "assistant" || b.Input.Query != "horses"):
				return vendorErrorf("messages.%d: the server_tool_use %q has lost its input", i, b.ID)
			case b.Type == "server_tool_use":
				open = b.ID
			case b.Type == "web_search_tool_result" && (b.ToolUseID != open || !strings.Contains(string(b.Content), `"encrypted_content":"sealed"`)):
				return vendorErrorf("messages.%d: unexpected web_search_tool_result for %q, or its content was changed", i, b.ToolUseID)
			case b.Type == "web_search_tool_result":
				open = ""
			}
			for _, c := range b.Citations {
				if c.Index != "index" {
					return vendorErrorf("messages.%d: the citation has no encrypted_index", i)
				}
			}
		}
		if open != "" && i+1 < len(r.Messages) {
			return vendorErrorf("messages.%d: `web_search` tool use with id `%s` was found without a corresponding `web_search_tool_result` block", i, open)
		}
	}
	return nil
}

func streamAnthropicSearch(t Turn) string {
	var b strings.Builder
	send := func(data string) { fmt.Fprintf(&b, "data: %s\n\n", data) }
	send(`{"type":"message_start","message":{"id":"r","type":"message","role":"assistant","model":"claude-x","content":[],"usage":{"input_tokens":10,"output_tokens":1}}}`)
	if t.Text == "search" {
		send(`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}}`)
		send(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}`)
		send(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"horses\"}"}}`)
		send(`{"type":"content_block_stop","index":0}`)
		send(`{"type":"message_delta","delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":2}}`)
		send(`{"type":"message_stop"}`)
		return b.String()
	}
	send(`{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"` + SearchedPage + `","title":"Horses","encrypted_content":"sealed","page_age":null}]}}`)
	send(`{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":[]}}`)
	send(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Found "}}`)
	send(`{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"` + SearchedPage + `","title":"Horses","encrypted_index":"index","cited_text":"a horse"}}}`)
	send(`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"it."}}`)
	send(`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3,"server_tool_use":{"web_search_requests":1}}}`)
	send(`{"type":"message_stop"}`)
	return b.String()
}

func checkGeminiSearch(body []byte) error {
	var r struct {
		Tools      []map[string]json.RawMessage
		ToolConfig struct{ IncludeServerSideToolInvocations bool }
		Contents   []struct {
			Parts []struct {
				ThoughtSignature       string
				ToolCall, ToolResponse *struct{ ID string }
			}
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	functions := false
	own := false
	for _, t := range r.Tools {
		for name := range t {
			switch name {
			case "functionDeclarations":
				functions = true
			case "googleSearch", "urlContext", "codeExecution":
				own = true
			default:
				return vendorErrorf("Invalid JSON payload received. Unknown name %q at 'tools': Cannot find field.", name)
			}
		}
	}
	if functions && own && !r.ToolConfig.IncludeServerSideToolInvocations {
		return vendorError("Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.")
	}
	open := ""
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if p.ToolCall != nil {
				if open = p.ToolCall.ID; p.ThoughtSignature != "c2VhbA==" {
					return vendorErrorf("Tool call %s is missing its thought_signature.", open)
				}
			}
			if p.ToolResponse != nil {
				if p.ToolResponse.ID != open {
					return vendorErrorf("Tool response %s has no call.", p.ToolResponse.ID)
				}
				open = ""
			}
		}
	}
	if open != "" {
		return vendorErrorf("Tool call %s has no response.", open)
	}
	return nil
}

func streamGeminiSearch(Turn) string {
	var b strings.Builder
	send := func(parts, more string) {
		fmt.Fprintf(&b, `data: {"candidates":[{"content":{"role":"model","parts":[%s]}%s}],"modelVersion":"gemini-x","usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":5}}`+"\r\n\r\n", parts, more)
	}
	send(`{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","id":"s1","args":{"queries":["horses"]}},"thoughtSignature":"c2VhbA=="}`, "")
	send(`{"toolResponse":{"toolType":"GOOGLE_SEARCH_WEB","id":"s1","response":{"search_suggestions":"…"}}}`, "")
	send(`{"text":"Found "}`, "")
	send(`{"text":"it."}`, "")
	send(`{"text":""}`, `,"finishReason":"STOP","groundingMetadata":{"webSearchQueries":["horses"],"groundingChunks":[{"web":{"uri":"`+SearchedPage+`","title":"Horses"}}]}`)
	return b.String()
}
