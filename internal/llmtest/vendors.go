package llmtest

import (
	"testing"

	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/gemini"
	"raddle.dev/llm/ollama"
	"raddle.dev/llm/openai"
)

// Vendors returns all personalities.
func Vendors() []Vendor {
	return append([]Vendor{OpenAI(), OpenAIResponses(), Anthropic(), Gemini(), Ollama()}, CompatibleServers()...)
}

// openModel returns a model of a vendor.
func openModel(t *testing.T, v Vendor, url string) llm.Model {
	t.Helper()
	var m llm.Model
	var err error
	switch v.Name {
	case "OpenAI":
		m, err = openai.New(openai.Config{Model: "gpt-x", BaseURL: url})
	case "OpenAI responses":
		m, err = openai.NewResponses(openai.Config{Model: "gpt-x", BaseURL: url})
	case "Anthropic":
		m, err = anthropic.New(anthropic.Config{Model: "claude-x", BaseURL: url})
	case "Ollama":
		m, err = ollama.New(ollama.Config{Model: "qwen3:8b", BaseURL: url})
	case "Gemini":
		m, err = gemini.New(gemini.Config{Model: "gemini-x", BaseURL: url})
	default:
		c := openai.Config{Model: "x", BaseURL: url}
		if _, known := openai.FindProfile(v.Name); known {
			c.Profile = v.Name
		}
		m, err = openai.New(c)
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Client returns the settings of a client in config.yaml that reaches a vendor at an address, as a map of YAML in one line, and the id of its model.
func (v Vendor) Client(url string) (settings, model string) {
	switch v.Name {
	case "OpenAI":
		return `{name: v, type: openai, wire: chat, api_base: "` + url + `/v1", api_key: none, models: [gpt-x]}`, "v:gpt-x"
	case "OpenAI responses":
		return `{name: v, type: openai, api_base: "` + url + `/v1", api_key: none, models: [gpt-x]}`, "v:gpt-x"
	case "Anthropic":
		return `{name: v, type: anthropic, api_base: "` + url + `", api_key: none, models: [claude-x]}`, "v:claude-x"
	case "Gemini":
		return `{name: v, type: gemini, api_base: "` + url + `", api_key: none, models: [gemini-x]}`, "v:gemini-x"
	case "Ollama":
		return `{name: v, type: ollama, api_base: "` + url + `", models: ["qwen3:8b"]}`, "v:qwen3:8b"
	}
	profile := ""
	if _, known := openai.FindProfile(v.Name); known {
		profile = "profile: " + v.Name + ", "
	}
	return `{name: v, type: openai-compatible, ` + profile + `api_base: "` + url + `/v1", models: [x]}`, "v:x"
}
