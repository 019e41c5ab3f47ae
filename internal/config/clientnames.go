package config

// clientTypes are the values of the type of a client in config.yaml.
var clientTypes = []string{"openai", "openai-compatible", "anthropic", "gemini", "ollama", "script", "bedrock"}

// ClientAliases maps names that other programs use for clients to the clients of
// raddle. A client of config.yaml with such a name takes precedence.
var ClientAliases = map[string]string{"claude": "anthropic"}

// ClientHint returns what to do about a client that other programs support and
// raddle does not, or "".
func ClientHint(name string) string {
	const gateway = "name a client with type openai-compatible and the api_base of an interface that is compatible with OpenAI's"
	switch name {
	case "vertexai":
		return "Gemini models are gemini:MODEL with GEMINI_API_KEY; for Vertex AI " + gateway
	case "azure-openai":
		return "name a client with type openai and api_base: https://RESOURCE.openai.azure.com/openai/v1"
	case "bedrock":
		return "name a client with type openai and api_base: https://bedrock-runtime.REGION.amazonaws.com/openai/v1"
	case "cohere":
		return "raddle has no client of its own for " + name + ": in config.yaml, " + gateway
	}
	return ""
}
