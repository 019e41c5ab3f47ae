//go:build unix

package api

import (
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
