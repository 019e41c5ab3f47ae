//go:build unix

package api

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/server/servertest"
)

// One journal that cannot be read closes no list: the questions of the other runs are there, and the damaged run is named.
func TestDamagedRunInLists(t *testing.T) {
	home := servertest.NewHome(t, map[string]string{"ask/graph.yaml": `
name: ask
start: first
nodes:
  first: {type: script, script: first.sh, next: review}
  review: {type: approval, question: "Send it?", options: [yes, no], routes: {yes: sent, no: sent}, on_other: sent}
  sent: {type: end, output: sent}
`, "ask/first.sh": "echo '{}'\n"})
	w := serveHome(t, home)
	var ids []string
	for range 3 {
		ids = append(ids, w.get(201, "POST", "/runs?wait=60s", `{"agent": "ask"}`)["run"].(string))
	}
	bad := ids[1]
	db, err := sql.Open("sqlite", filepath.Join(home.Dir, ".local", "state", "raddle", "runs.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	changed, err := db.ExecContext(t.Context(), "UPDATE record SET data = CAST(data || x'20' AS BLOB) WHERE id = (SELECT id << 32 | 2 FROM thread WHERE name = ?)", bad)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := changed.RowsAffected(); n != 1 || err != nil {
		t.Fatalf("%d records changed, %v", n, err)
	}
	// Lists read the index alone: it says what was written before the damage, until it is written again.
	if text := jsonText(t, w.get(200, "GET", "/questions", "")["items"]); !strings.Contains(text, ids[0]) || !strings.Contains(text, bad) || !strings.Contains(text, ids[2]) {
		t.Errorf("questions of %v: %s", ids, text)
	}
	if _, err := db.ExecContext(t.Context(), "UPDATE line SET status = '', wait = 0"); err != nil {
		t.Fatal(err)
	}
	questions := w.get(200, "GET", "/questions", "")
	if text := jsonText(t, questions["items"]); strings.Contains(text, bad) || !strings.Contains(text, ids[0]) || !strings.Contains(text, ids[2]) {
		t.Errorf("questions of %v without %s: %s", ids, bad, text)
	}
	if text := jsonText(t, questions["damaged"]); !strings.Contains(text, bad) || !strings.Contains(text, `"status":"damaged"`) || strings.Contains(text, ids[0]) {
		t.Errorf("the damaged run is %s: %s", bad, text)
	}
	if list := w.get(200, "GET", "/runs", "")["items"].([]any); len(list) != 3 {
		t.Errorf("GET runs has %d lines, want 3", len(list))
	}
	for _, id := range []string{ids[0], ids[2]} {
		w.get(200, "GET", "/runs/"+id, "")
	}
	w.refuse(500, "run-damaged", "GET", "/runs/"+bad, "")
	if counts, err := w.service.CountRuns(t.Context()); err != nil || len(counts) == 0 {
		t.Errorf("counts %v, %v", counts, err)
	}
}
