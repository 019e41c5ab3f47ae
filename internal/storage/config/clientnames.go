package config

// ClientAliases maps names that other programs use for clients to the clients of
// raddle. A client of config.yaml with such a name takes precedence.
var ClientAliases = map[string]string{"claude": "anthropic"}

// ClientHint returns what to do about a client that exists only if config.yaml names it, or that other programs support
// and raddle does not, or "".
func ClientHint(name string) string {
	const gateway = "name a client with type openai-compatible and the api_base of an interface that is compatible with OpenAI's"
	switch name {
	case "vertexai":
		return "Gemini models are gemini:MODEL with GEMINI_API_KEY; for Vertex AI, name a client with type vertex in config.yaml"
	case "azure-openai":
		return "name a client with type openai and api_base: https://RESOURCE.openai.azure.com/openai/v1"
	case "bedrock", "vertex":
		return "name a client in config.yaml: clients: [{type: " + name + "}]"
	case "cohere":
		return "raddle has no client of its own for " + name + ": in config.yaml, " + gateway
	}
	return ""
}
