package openai

import (
	"net/http"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"raddle.dev/llm/internal/wiretest"
)

// TestSDKFaults shows why the replies are not read with the SDK's stream
// reader. When it fails after an update, a workaround may have become needless.
func TestSDKFaults(t *testing.T) {
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		failure bool // what the SDK reports, the opposite of what is right
	}{
		{"a cut stream passes", wiretest.Stream(events(`"delta":{"content":"Hel"}`)), false},
		{"a web page passes", func(w http.ResponseWriter, r *http.Request) { wiretest.Send(w, "<title>Welcome</title>") }, false},
		{"a null error fails", wiretest.Stream(strings.ReplaceAll(chunks(stop), `"id"`, `"error":null,"id"`)), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := wiretest.Serve(t, c.handler)
			chat := openai.NewChatCompletionService(option.WithBaseURL(s.URL), option.WithMaxRetries(0))
			stream := chat.NewStreaming(t.Context(), openai.ChatCompletionNewParams{Model: "m"})
			for stream.Next() {
			}
			if got := stream.Err(); (got != nil) != c.failure {
				t.Errorf("the SDK reports %v", got)
			}
		})
	}
}
