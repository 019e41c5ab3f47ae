package servertest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/llmtest"
)

// A HeldModel answers each request when the test lets it, with what it was told last.
type HeldModel struct {
	*httptest.Server
	Asked chan string // the user's messages of each request, with a | between them
	Reply chan string // takes the text of the next reply
}

// StartHeldModel starts a model that runs until the test ends. A request that the vendor would refuse fails the test.
func StartHeldModel(t *testing.T) *HeldModel {
	t.Helper()
	m := &HeldModel{Asked: make(chan string, 10), Reply: make(chan string)}
	vendor := llmtest.OpenAI()
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		if err := vendor.Check(raw); err != nil {
			t.Errorf("the provider refuses %s: %v", raw, err)
		}
		var body struct {
			Messages []struct{ Role, Content string }
		}
		_ = json.Unmarshal(raw, &body)
		var said []string
		for _, x := range body.Messages {
			if x.Role == "user" {
				said = append(said, x.Content)
			}
		}
		m.Asked <- strings.Join(said, " | ")
		select {
		case text := <-m.Reply:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":%q}}]}\n\n", text)
			fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(m.CloseClientConnections)
	t.Cleanup(m.Close)
	return m
}

// Config is the text of a configuration with the model, as held:m.
func (m *HeldModel) Config() string {
	return "clients:\n- {type: openai-compatible, name: held, api_base: " + m.URL + "/v1, models: [{name: m}]}\n"
}
