//go:build unix

package api

import (
	"path/filepath"
	"testing"

	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/server/servertest"
)

// A request names no file of the server, and its answer does not depend on which files there are. An agent replays transcripts of its own directory only.
func TestRequestsNameModelsOfClientsOnly(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{
		"bot/config.yaml": "name: bot\nmodel: script:t.yaml\n", "bot/t.yaml": "- {text: hello, repeat: true}\n",
		"leaves/config.yaml": "name: leaves\nmodel: script:../bot/t.yaml\n",
	})
	w := serveHome(t, home)
	transcript := filepath.Join(t.TempDir(), "t.yaml")
	testfile.WriteFile(t, transcript, "- {text: hello, repeat: true}\n")
	run := w.get(201, "POST", "/runs", `{"agent": "bot", "prompt": "p"}`)["run"].(string)
	if _, err := w.service.WaitRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"/dev/zero", "/etc/passwd", "/nope", "t.yaml", "../bot/t.yaml", transcript, ""} {
		for _, request := range [][2]string{{"/runs", `{"agent": "bot", "prompt": "p", "model": "script:` + file + `"}`}, {"/runs/" + run + "/fork", `{"model": "script:` + file + `"}`}} {
			got := w.get(400, "POST", request[0], request[1])
			if want := "a request cannot name a file of the server as its model"; got["detail"] != want { // the same for all
				t.Errorf("%s of %q: %v, want %q", request[0], file, got, want)
			}
		}
	}
	w.get(422, "POST", "/runs", `{"agent": "leaves", "prompt": "p"}`)
}
