//go:build unix

package api

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server/servertest"
)

// pastAgents are an agent whose graph runs another agent and asks, and what a person may have made of them since.
var pastAgents = map[string]string{
	"past/graph.yaml": `
name: past
start: alpha
nodes:
  alpha: {type: script, script: alpha.sh, next: sub}
  sub: {type: agent, agent: below, prompt: "{{initial_prompt}}", next: ask}
  ask: {type: input, question: Who?, next: done}
  done: {type: end, output: over}
`,
	"past/alpha.sh":    "echo '{}'\n",
	"below/graph.yaml": "name: below\nstart: inner\nnodes:\n  inner: {type: script, script: inner.sh, next: out}\n  out: {type: end, output: x}\n",
	"below/inner.sh":   "echo '{}'\n",
}

const otherGraph = "name: past\nstart: beta\nnodes:\n  beta: {type: input, question: Who?, next: gamma}\n  gamma: {type: end}\n"

// changesSince are the ways in which the files of an agent differ from those that a run has used.
var changesSince = map[string]func(t *testing.T, agents string){
	"nothing": func(*testing.T, string) {},
	"another graph": func(t *testing.T, agents string) {
		writeFile(t, filepath.Join(agents, "past/graph.yaml"), otherGraph)
	},
	"an invalid graph": func(t *testing.T, agents string) {
		writeFile(t, filepath.Join(agents, "past/graph.yaml"), "name: past\nnodes: nonsense\n")
	},
	"another graph below": func(t *testing.T, agents string) {
		writeFile(t, filepath.Join(agents, "below/graph.yaml"), otherGraph)
	},
	"the graph is gone": func(t *testing.T, agents string) {
		removeFile(t, filepath.Join(agents, "past/graph.yaml"))
	},
	"all is gone": func(t *testing.T, agents string) {
		removeFile(t, agents)
	},
	"a conversation": func(t *testing.T, agents string) {
		removeFile(t, filepath.Join(agents, "past/graph.yaml"))
		writeFile(t, filepath.Join(agents, "past/config.yaml"), "model: script:none.yaml\ninstructions: x\n")
	},
	"another script": func(t *testing.T, agents string) {
		writeFile(t, filepath.Join(agents, "past/alpha.sh"), "echo '{\"_next\": \"done\"}'\n")
	},
	"a file in the place of an agent": func(t *testing.T, agents string) {
		removeFile(t, filepath.Join(agents, "below"))
		writeFile(t, filepath.Join(agents, "below"), "a file\n")
	},
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func removeFile(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

// withOlderRecord copies a run with a start record that change has made from its own: as another version would have written it.
func (w *world) withOlderRecord(run, into string, change func(*runs.Record)) string {
	w.Helper()
	p := w.service.Process()
	st, thread, err := p.Runs.FindThread(w.Context(), run)
	if err != nil {
		w.Fatal(err)
	}
	snap, err := history.Inspect(w.Context(), st, thread, 0)
	if err != nil {
		w.Fatal(err)
	}
	rec, err := runs.DecodeRecord(snap.Meta)
	if err != nil {
		w.Fatal(err)
	}
	change(rec)
	meta, err := json.Marshal(rec)
	if err != nil {
		w.Fatal(err)
	}
	copied := journal.Range{}
	var list []journal.Record
	for r, err := range journal.Records(w.Context(), st, thread, copied) {
		if err != nil {
			w.Fatal(err)
		}
		if r.Kind == journal.KindStart {
			r.Data = bytes.Replace(r.Data, append(binary.AppendUvarint(nil, uint64(len(snap.Meta))), snap.Meta...), append(binary.AppendUvarint(nil, uint64(len(meta))), meta...), 1)
		}
		r.Sum = 0
		list = append(list, r)
	}
	if err := st.Append(w.Context(), into, 0, list); err != nil {
		w.Fatal(err)
	}
	return into
}

// A run is drawn with the graph that it has used, on every surface and whatever has happened to the agent's files since: by a start
// record that has the picture, and by an older one that has only the definitions.
func TestPastRunsAreDrawnAsTheyWere(t *testing.T) {
	for name, change := range changesSince {
		t.Run(name, func(t *testing.T) {
			home := servertest.NewHome(t, pastAgents)
			w := serveHome(t, home)
			run := w.get(201, "POST", "/runs?wait=60s", `{"agent": "past", "prompt": "x"}`)
			if run["status"] != "waiting" {
				t.Fatalf("%v", run)
			}
			id := run["run"].(string)
			older := w.withOlderRecord(id, "1older", func(r *runs.Record) { r.Picture = nil })
			change(t, filepath.Join(home.Dir, ".config", "raddle", "agents"))
			for _, id := range []string{id, older} {
				w.expectPast(id, name == "nothing")
			}
		})
	}
}

// expectPast checks what each surface shows of a run of the agent past.
func (w *world) expectPast(id string, unchanged bool) {
	w.Helper()
	for _, query := range []string{"", "?plain=true", "?at=3"} {
		res := w.send("GET", "/runs/"+id+"/picture.svg"+query, "")
		text, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != 200 {
			w.Fatalf("%s %s %v", res.Status, text, err)
		}
		for _, place := range []string{"alpha", "sub", "sub/inner", "ask", "done"} {
			if !strings.Contains(string(text), `data-node="`+place+`"`) {
				w.Errorf("run %s: picture.svg%s does not have %s", id, query, place)
			}
		}
		for _, place := range []string{"beta", "gamma"} {
			if strings.Contains(string(text), place) {
				w.Errorf("run %s: picture.svg%s shows %s of today's file", id, query, place)
			}
		}
	}
	var places []string
	for _, item := range w.get(200, "GET", "/runs/"+id+"/timeline", "")["items"].([]any) {
		m := item.(map[string]any)
		if place, ok := m["place"].(string); ok && !slices.Contains(places, place) {
			places = append(places, place)
		}
	}
	if slices.Sort(places); !slices.Equal(places, []string{"alpha", "ask", "sub", "sub/inner"}) {
		w.Errorf("run %s: the timeline has the places %v", id, places)
	}
	shown := w.get(200, "GET", "/runs/"+id, "")
	picture := shown["picture"].(map[string]any)
	if note, _ := picture["note"].(string); picture["from"] != "record" || (note == "") != unchanged {
		w.Errorf("run %s: the picture is from %v, with the note %q", id, picture["from"], note)
	}
	w.get(200, "POST", "/runs/"+id+"/breaks", `{"breaks": [{"node": "sub/inner"}, {"node": "done"}]}`)
	w.refuse(400, "usage", "POST", "/runs/"+id+"/breaks", `{"breaks": [{"node": "gamma"}]}`)
}

// A run of a program is drawn with the structure in its journal, and one of an older program with the steps that it has made, which the
// page says.
func TestRunsOfProgramsAreDrawn(t *testing.T) {
	w := newWorld(t)
	st, err := w.service.Process().Runs.OpenStore()
	if err != nil {
		t.Fatal(err)
	}
	pass := func(context.Context, graph.State) (graph.Update, error) { return graph.Update{}, nil }
	g, err := graph.Compile(graph.Def{Name: "mine", Start: []string{"one"}, Nodes: []graph.Node{{Name: "one", Run: func(context.Context, graph.State) (graph.Update, error) {
		return graph.Update{Goto: []string{"two"}}, nil
	}, Routes: []string{"two", "never"}}, {Name: "two", Run: pass}, {Name: "never", Run: pass}}, Edges: []graph.Edge{graph.NewEdge("two", graph.End), graph.NewEdge("never", graph.End)}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (&graph.Runner{Graph: g, Store: st}).Invoke(t.Context(), graph.Input{Thread: "1mine", Run: "1mine"}); err != nil {
		t.Fatal(err)
	}
	var older []journal.Record
	for r, err := range journal.Records(t.Context(), st, "1mine", journal.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Sum = 0; r.Kind == journal.KindStart {
			at := bytes.LastIndex(r.Data, []byte(`{"graph":`))
			r.Data = r.Data[:at-len(binary.AppendUvarint(nil, uint64(len(r.Data)-at)))]
		}
		older = append(older, r)
	}
	if err := st.Append(t.Context(), "1older", 0, older); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]struct {
		from  string
		nodes []string
		note  bool
	}{"1mine": {"journal", []string{"one", "two", "never"}, false}, "1older": {"steps", []string{"one", "two"}, true}} {
		picture := w.get(200, "GET", "/runs/"+id, "")["picture"].(map[string]any)
		if note, _ := picture["note"].(string); picture["from"] != want.from || (note != "") != want.note {
			t.Errorf("%s: %v", id, picture)
		}
		text, err := io.ReadAll(w.send("GET", "/runs/"+id+"/picture.svg", "").Body)
		if n := strings.Count(string(text), "data-node="); err != nil || n != len(want.nodes) {
			t.Errorf("%s: %d nodes, %v", id, n, err)
		}
		for _, n := range want.nodes {
			if !strings.Contains(string(text), fmt.Sprintf("data-node=%q", n)) {
				t.Errorf("%s: no node %s", id, n)
			}
		}
	}
}
