package llmtest

import (
	"encoding/json"
	"net/http"
	"regexp"
)

// The access token, the project and the location that [VertexGemini] and [VertexAnthropic] take.
const (
	GoogleToken    = "ya29.token-of-the-example-0001"
	GoogleProject  = "example-project"
	GoogleLocation = "europe-west4"
)

// VertexGemini is Gemini on Google's Vertex. It is [Gemini] at another address with an access token, and stricter:
//
//   - Keys of Gemini's own API are refused (docs.cloud.google.com/vertex-ai/docs/authentication).
//   - Ids of calls: "Unknown name \"id\" at 'contents[1].parts[0].function_call': Cannot find field" (pydantic/pydantic-ai#5081,
//     langchain-ai/langchainjs#10266, vercel/ai#15891).
func VertexGemini() Vendor {
	v := Gemini()
	v.Name = "Vertex Gemini"
	v.Check = func(body []byte) error {
		if err := checkVertexIDs(body); err != nil {
			return err
		}
		return checkGemini(body)
	}
	v.admit = admitVertex(regexp.MustCompile(`^/v1/projects/` + GoogleProject + `/locations/` + GoogleLocation + `/publishers/google/models/gemini-[^/:]+:streamGenerateContent\?alt=sse$`))
	return v
}

// VertexAnthropic is Anthropic's models on Google's Vertex. It is [Anthropic] at another address with an access token,
// with the version in the body and the model in the address:
//
//   - anthropic_version other than vertex-2023-10-16 (clawvisor/clawvisor#156).
//   - model in the body: "model: Extra inputs are not permitted" (platform.claude.com/docs, Claude on Vertex AI).
func VertexAnthropic() Vendor {
	v := Anthropic()
	v.Name = "Vertex Anthropic"
	v.Check = func(body []byte) error {
		var r struct {
			Model   json.RawMessage `json:"model"`
			Version string          `json:"anthropic_version"`
		}
		switch err := json.Unmarshal(body, &r); {
		case err != nil:
			return err
		case r.Model != nil:
			return vendorError("model: Extra inputs are not permitted")
		case r.Version != "vertex-2023-10-16":
			return vendorError("anthropic_version: Field required")
		}
		return checkAnthropic(body)
	}
	v.admit = admitVertex(regexp.MustCompile(`^/v1/projects/` + GoogleProject + `/locations/` + GoogleLocation + `/publishers/anthropic/models/claude-[^/:]+:streamRawPredict$`))
	return v
}

// admitVertex judges the address and the token of a request.
func admitVertex(path *regexp.Regexp) func(r *http.Request) (int, string) {
	return func(r *http.Request) (int, string) {
		switch {
		case r.Method != http.MethodPost || !path.MatchString(r.URL.RequestURI()):
			return http.StatusNotFound, "Publisher Model was not found or your project does not have access to it: " + r.URL.RequestURI()
		case r.Header.Get("X-Goog-Api-Key") != "" || r.Header.Get("X-Api-Key") != "":
			return http.StatusUnauthorized, "API keys are not supported by this API. Expected OAuth2 access token"
		case r.Header.Get("Authorization") != "Bearer "+GoogleToken:
			return http.StatusUnauthorized, "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
		}
		return 0, ""
	}
}

// checkVertexIDs returns an error if a call or a response has an id.
func checkVertexIDs(body []byte) error {
	type named struct{ ID json.RawMessage }
	var r struct {
		Contents []struct {
			Parts []struct{ FunctionCall, FunctionResponse named }
		}
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return err
	}
	for i, c := range r.Contents {
		for j, p := range c.Parts {
			for name, part := range map[string]named{"function_call": p.FunctionCall, "function_response": p.FunctionResponse} {
				if part.ID != nil {
					return vendorErrorf(`Invalid JSON payload received. Unknown name "id" at 'contents[%d].parts[%d].%s': Cannot find field.`, i, j, name)
				}
			}
		}
	}
	return nil
}
