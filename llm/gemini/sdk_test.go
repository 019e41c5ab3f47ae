package gemini

import (
	"testing"

	"google.golang.org/genai"

	"raddle.dev/llm/internal/wiretest"
)

// TestSDKFaults shows why the replies are not read with the SDK's stream
// reader. When it fails after an update, a workaround may have become needless.
func TestSDKFaults(t *testing.T) {
	s := wiretest.Serve(t, wiretest.Stream(responses(parts(`{"functionCall":{"name":"f","args":{"n":9007199254740993}}}`))))
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		Backend: genai.BackendGeminiAPI, APIKey: "k", HTTPOptions: genai.HTTPOptions{BaseURL: s.URL},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got any
	for r, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hi"), nil) {
		if err != nil {
			t.Fatalf("the SDK reports the early end: %v", err)
		}
		got = r.FunctionCalls()[0].Args["n"]
	}
	if got != float64(9007199254740992) {
		t.Errorf("the SDK reads 9007199254740993 as %v", got)
	}
}
