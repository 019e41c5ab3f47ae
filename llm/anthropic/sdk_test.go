package anthropic

import (
	"net/http"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"raddle.dev/llm/internal/wiretest"
)

// TestSDKFaults shows why the replies are not read with the SDK's stream
// reader, which reports no error for any of these. When it fails after an
// update, a workaround may have become needless.
func TestSDKFaults(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"a cut stream passes": wiretest.Stream(events(start, textStart, text("0", "Hel"))),
		"a web page passes":   func(w http.ResponseWriter, r *http.Request) { wiretest.Send(w, "<title>Welcome</title>") },
		"an unnamed failure is skipped": wiretest.Stream(strings.ReplaceAll(
			events(start, `{"type":"error","error":{"type":"overloaded_error","message":"too busy"}}`), "event:", "x:")),
	} {
		t.Run(name, func(t *testing.T) {
			s := wiretest.Serve(t, handler)
			messages := anthropic.NewMessageService(option.WithBaseURL(s.URL), option.WithMaxRetries(0))
			stream := messages.NewStreaming(t.Context(), anthropic.MessageNewParams{Model: "m", MaxTokens: 1})
			for stream.Next() {
			}
			if err := stream.Err(); err != nil {
				t.Errorf("the SDK reports %v", err)
			}
		})
	}
}
