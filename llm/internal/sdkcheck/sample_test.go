package sdkcheck

import (
	"encoding/json"

	"raddle.dev/llm"
)

// sampleRequests returns requests that have every field and every sort of part that all wires can carry.
func sampleRequests() map[string]llm.Request {
	schema := json.RawMessage(`{"type":"object","properties":{"zebra":{"type":"string"},"apple":{"type":"number"}},"required":["zebra"]}`)
	temperature, topP := 0.5, 0.25
	picture := llm.Image{MIME: "image/png", Data: []byte{1, 2, 3}}
	document := llm.File{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")}
	all := map[string]llm.Request{
		"settings": {
			System: "Be brief.", Messages: []llm.Message{llm.User("hi")}, Temperature: &temperature, TopP: &topP, MaxTokens: 9,
			Stop: []string{"END"}, Schema: schema,
		},
		"media": {Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{
			llm.Text{Text: "look"}, picture, llm.Image{MIME: "image/png", URL: "https://example.org/a.png"}, document,
		}}}},
		"conversation": {
			System: "Be brief.",
			Tools:  []llm.ToolSpec{{Name: "f", Description: "does f", Schema: schema}, {Name: "g"}},
			Messages: []llm.Message{
				llm.User("weather?"),
				{Role: llm.RoleAssistant, Parts: []llm.Part{
					llm.Reasoning{Text: "hm", Signature: "c2VhbA==", Origin: "anthropic"},
					llm.Reasoning{Signature: "hidden", Redacted: true, Origin: "anthropic"},
					llm.Text{Text: "Let me see."},
					llm.Reasoning{Signature: "c2VhbA==", Origin: "gemini"},
					llm.ToolCall{ID: "c1", Name: "f", Args: json.RawMessage(`{"zebra":"x"}`), Signature: "c2VhbA==", Origin: "gemini"},
					llm.ToolCall{ID: "c2", Name: "functions.g"},
				}},
				{Role: llm.RoleTool, Parts: []llm.Part{
					llm.ToolResult{CallID: "c1", Name: "f", Content: []llm.Part{llm.Text{Text: "18"}, picture, document}},
					llm.ToolResult{CallID: "c2", Name: "functions.g", Error: true, Content: []llm.Part{llm.Text{Text: "no such city"}}},
				}},
				llm.User("thanks"),
			},
		},
	}
	for _, effort := range []string{"low", "medium", "high", "none"} {
		all["effort "+effort] = llm.Request{Messages: []llm.Message{llm.User("hi")}, Effort: effort}
	}
	return all
}
