//go:build unix

package api

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/server/servertest"
)

// Wrong arguments of any kind of tool are an error of the request, whatever the rules say about the call.
func TestWrongArgumentsAreRefused(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"own/config.yaml": "name: own\nmodel: script:t.yaml\ninstructions: x\n", "own/t.yaml": "- {text: x}\n",
		"own/tools.sh": "# @cmd Adds.\n# @option --number! <INT>  a number\nadd() { echo x; }\n",
	}))
	for name, body := range map[string]string{
		"execute_command": `{"arguments": {}}`,
		"fs_read":         `{"arguments": {}}`,
		"fs_write":        `{"arguments": {"path": {}}}`,
		"add":             `{"agent": "own", "arguments": {}}`,
	} {
		w.refuse(400, "usage", "POST", "/tools/"+name+"/call", body)
	}
}

// An agent that is a model is not started without a prompt, over the API and in a session; a graph is.
func TestAPromptIsNeeded(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"talk/config.yaml": "name: talk\nmodel: script:t.yaml\ninstructions: x\n", "talk/t.yaml": "- {text: hello, repeat: true}\n",
		"graph/graph.yaml": "name: graph\nstart: done\nnodes:\n  done: {type: end, output: x}\n",
	}))
	for _, body := range []string{`{"agent": "talk"}`, `{"agent": "talk", "prompt": "  \n"}`, `{"agent": "talk", "prompt": "", "session": "s"}`} {
		w.refuse(400, "usage", "POST", "/runs", body)
	}
	w.get(201, "POST", "/runs?wait=60s", `{"agent": "talk", "prompt": "hi"}`)
	w.get(201, "POST", "/runs?wait=60s", `{"agent": "graph"}`)
	if _, n := w.countRecords(); n != 2 {
		t.Errorf("%d runs are recorded, want 2", n)
	}
}

// An operation that takes no body refuses one, and does nothing: of all operations that change something.
func TestBodiesAreNotPassedOver(t *testing.T) {
	w := newWorld(t)
	run := w.ask()
	records, count := w.countRecords()
	document, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody json.RawMessage `json:"requestBody"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		t.Fatal(err)
	}
	tried := 0
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if method == "get" || len(op.RequestBody) > 0 {
				continue
			}
			tried++
			at := strings.ReplaceAll(path, "{id}", run)
			w.refuse(400, "invalid-request", strings.ToUpper(method), at, `{"answers":[{"value":"Ada"}]}`)
		}
	}
	if tried < 3 {
		t.Errorf("%d operations without a body were tried", tried)
	}
	if after, runs := w.countRecords(); after != records || runs != count {
		t.Errorf("%d records and %d runs more", after-records, runs-count)
	}
	w.get(200, "POST", "/runs/"+run+"/cancel", `{}`)
}
