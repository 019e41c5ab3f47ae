package app

// clientAliases are names that other programs give to clients, and the client that
// raddle has for them. A client of config.yaml with such a name comes first.
var clientAliases = map[string]string{"claude": "anthropic"}

// clientHint returns what to do about a client that other programs know and raddle
// has no wire for, or "".
func clientHint(name string) string {
	const gateway = "name a client with type openai-compatible and the api_base of an interface that is compatible with OpenAI's"
	switch name {
	case "vertexai":
		return "Gemini models are gemini:MODEL with GEMINI_API_KEY; for Vertex AI " + gateway
	case "azure-openai", "bedrock", "cohere":
		return "raddle has no client of its own for " + name + ": in config.yaml, " + gateway
	}
	return ""
}
