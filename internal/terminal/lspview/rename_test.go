//go:build unix

package lspview_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/process/agentcheck"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/terminal/language"
	"raddle.dev/internal/testkit/testneed"
)

// Each key and each node of two examples gets another name, in their templates, scripts, tests and recorded replies.
// The check finds no more than before, and their tests pass.
func TestRenamedExamplesPassTheirTests(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "sed", "grep", "wc")
	names := map[string][]string{
		"triage":     {"severity", "area", "summary", "owner", "earlier", "route", "answered"},
		"map-reduce": {"reviews", "paragraphs", "total", "log", "review_one", "count"},
	}
	all := examples(t)
	for agent, list := range names {
		files := map[string]string{}
		for name, text := range all {
			if strings.HasPrefix(name, agent+"/") {
				files[name] = text
			}
		}
		for _, name := range []string{"text.txt", "data/incidents.txt", "data/owners.txt"} {
			if text, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", agent, name)); err == nil {
				files[agent+"/"+name] = string(text)
			}
		}
		c := start(t, files)
		uri := c.open(agent+"/graph.yaml", files[agent+"/graph.yaml"])
		c.waitFor(uri, func([]language.Diagnostic) bool { return true })
		for _, name := range list {
			c.renameEverywhere(uri, name, "other_"+name, files)
		}
		place := app.Place{Name: agent, Dir: filepath.Join(c.dir, agent)}
		if report := agentcheck.Check(t.Context(), c.process, place, agentcheck.Options{}); report.Errors > 0 {
			t.Errorf("%s: %s", agent, compact(report))
		}
		tests := filepath.Join(place.Dir, agent+".test.yaml")
		suite := testrun.Suite{}
		results, err := suite.Run(t.Context(), []string{tests}, func(*testrun.FileResult) {})
		if err != nil || len(results) != 1 || results[0].CountFailed() > 0 {
			t.Errorf("%s: %v", agent, err)
			for _, r := range results {
				t.Errorf("%v %s", r.Err, compact(r.Results))
			}
		}
	}
}

// renameEverywhere gives a name another one, and writes and opens the files as they are then.
func (c *client) renameEverywhere(uri, old, name string, files map[string]string) {
	c.t.Helper()
	text := c.docs[uri].String()
	from := ""
	for _, place := range []string{"  " + old + ":", " " + old + ":", "{{" + old, old + ": {"} {
		if strings.Contains(text, place) {
			from = place
			break
		}
	}
	if from == "" {
		c.t.Fatalf("%s is not in the graph", old)
	}
	at := strings.Index(text, from) + strings.Index(from, old)
	var edit language.WorkspaceEdit
	c.call("textDocument/rename", map[string]any{
		"textDocument": map[string]any{"uri": uri}, "position": newDocument(text).position(len(newDocument(text[:at]).text)), "newName": name,
	}, &edit)
	texts := c.applied(&edit, files)
	for file := range maps.Keys(files) {
		after, changed := texts[c.uri(file)]
		if !changed {
			continue
		}
		files[file] = after
		if err := os.WriteFile(filepath.Join(c.dir, filepath.FromSlash(file)), []byte(after), 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
	c.change(uri, 0, len(c.docs[uri].text), texts[uri])
}
