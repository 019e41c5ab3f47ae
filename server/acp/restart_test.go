package acp

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

// A reply whose stream breaks is not two halves without a word: what the editor has shown cannot be taken back, so that a line says that the reply
// starts again.
func TestReplyStartsAgain(t *testing.T) {
	var requests atomic.Int32
	shown := make(chan struct{}) // is closed when the editor shows the first half
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		if requests.Add(1) == 1 {
			fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"Half of it"}}]}`+"\n\n")
			w.(http.Flusher).Flush()
			select {
			case <-shown:
			case <-t.Context().Done():
			}
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, `data: {"choices":[{"index":0,"delta":{"content":"The whole reply."},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	defer model.Close()
	home := t.TempDir()
	dir := filepath.Join(home, ".config", "raddle")
	for path, text := range map[string]string{
		"config.yaml":            "clients:\n- {name: fake, type: openai-compatible, api_base: '" + model.URL + "'}\n",
		"agents/cut/config.yaml": "name: cut\nmodel: fake:m\n",
	} {
		file := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := connect(t, home, "cut")
	id := c.newSession()
	first := make(chan string, 1)
	go func() {
		first <- describe(<-c.updates)
		close(shown)
	}()
	rest, _ := c.prompt(id, "hello")
	text := textOf(append([]string{<-first}, rest...))
	if want := "Half of it\n\n[connection lost, the reply starts again]\n\nThe whole reply."; text != want || requests.Load() != 2 {
		t.Errorf("the editor shows %q after %d requests, want %q", text, requests.Load(), want)
	}
}
