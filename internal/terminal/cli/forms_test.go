package cli_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each model of a session is offered the tools for changes in its own form, unless the agent names them alone.
func TestModelsAreOfferedTheirForm(t *testing.T) {
	t.Parallel()
	w := newWorkplace(t, "\n-- group/config.yaml --\nname: group\nglobal_tools: [fs]\n-- named/config.yaml --\nname: named\nglobal_tools: [fs, fs_patch, apply_patch]\n")
	var mu sync.Mutex
	var offered []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		var req struct {
			Tools []struct{ Function struct{ Name string } }
		}
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}
		var names []string
		for _, tl := range req.Tools {
			if name := tl.Function.Name; slices.Contains([]string{"fs_edit", "fs_patch", "apply_patch", "fs_write"}, name) {
				names = append(names, name)
			}
		}
		slices.Sort(names)
		mu.Lock()
		offered = append(offered, strings.Join(names, " "))
		mu.Unlock()
		rw.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(rw, "data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ok\"}}]}\n\n"+
			"data: {\"id\":\"1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(server.Close)
	w.write(".config/raddle/config.yaml", "clients: [{name: local, type: openai-compatible, api_base: \""+server.URL+"/v1\", models: [gpt-5.1, claude-opus-5]}]\n")
	for _, c := range [][]string{{"./group", "local:gpt-5.1"}, {"./group", "local:claude-opus-5"}, {"./group", "local:gpt-5.1"}, {"./named", "local:claude-opus-5"}} {
		if r := w.run("run", c[0], "hello", "-q", "--session", "s", "-m", c[1]); r.code != 0 {
			t.Fatalf("%v: exit code %d\n%s", c, r.code, r.err)
		}
	}
	if d := cmp.Diff([]string{"apply_patch fs_write", "fs_edit fs_write", "apply_patch fs_write", "apply_patch fs_edit fs_patch fs_write"}, offered); d != "" {
		t.Errorf("offered (-want +got):\n%s", d)
	}
}
