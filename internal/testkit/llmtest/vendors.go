package llmtest

import "strings"

// Vendors returns all personalities.
func Vendors() []Vendor {
	return append([]Vendor{OpenAI(), OpenAIResponses(), Anthropic(), Gemini(), Ollama(), Bedrock(), BedrockLlama(), VertexGemini(), VertexAnthropic(), Azure()}, CompatibleServers()...)
}

// Client returns the settings of a client in config.yaml that reaches a vendor at an address, as a map of YAML in one
// line, and the id of its model.
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
	case "Bedrock":
		return `{name: v, type: bedrock, region: ` + AWSRegion + `, api_base: "` + url + `", api_key: "` + BedrockKey + `", models: ["eu.anthropic.claude-x-20260101-v1:0"]}`, "v:eu.anthropic.claude-x-20260101-v1:0"
	case "Bedrock Llama":
		return `{name: v, type: bedrock, region: ` + AWSRegion + `, api_base: "` + url + `", api_key: "` + BedrockKey + `", models: ["meta.llama-x:0"]}`, "v:meta.llama-x:0"
	case "Vertex Gemini":
		return `{name: v, type: vertex, project: ` + GoogleProject + `, location: ` + GoogleLocation + `, api_base: "` + url + `", api_key: ` + GoogleToken + `, models: [gemini-x]}`, "v:gemini-x"
	case "Vertex Anthropic":
		return `{name: v, type: vertex, project: ` + GoogleProject + `, location: ` + GoogleLocation + `, api_base: "` + url + `", api_key: ` + GoogleToken + `, models: ["claude-x@20260101"]}`, "v:claude-x@20260101"
	case "Azure":
		return `{name: v, type: openai, api_base: "http://example.openai.azure.com/openai/v1", proxy: "` + url + `", api_key: ` + AzureKey + `, models: [` + AzureDeployment + `]}`, "v:" + AzureDeployment
	case "Ollama":
		return `{name: v, type: ollama, api_base: "` + url + `", models: ["qwen3:8b"]}`, "v:qwen3:8b"
	}
	profile := "profile: " + v.Name + ", "
	if strings.HasPrefix(v.Name, "without-") {
		profile = "" // a server that nothing is known about
	}
	return `{name: v, type: openai-compatible, ` + profile + `api_base: "` + url + `/v1", models: [x]}`, "v:x"
}
