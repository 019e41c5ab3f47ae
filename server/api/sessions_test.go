//go:build unix

package api

import (
	"fmt"
	"strings"
	"testing"

	"raddle.dev/internal/process/conversation"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// newChatWorld is a service with an agent that can be talked with.
func newChatWorld(t *testing.T) *world {
	return serveHome(t, servertest.NewHome(t, map[string]string{
		"talker/config.yaml":     "name: talker\nmodel: script:transcript.yaml\n",
		"talker/transcript.yaml": "- {match: plums, text: Plums are blue., repeat: true}\n- {match: pears, text: Pears are green., repeat: true}\n- {match: apples, text: Apples are red., repeat: true}\n",
		"ask/graph.yaml":         strings.Replace(askGraph, "  first: {type: script, script: first.sh, next: ask}\n", "", 1),
	}))
}

// say sends a message in a session, waits for the reply and returns the run.
func (w *world) say(session, prompt string) string {
	w.Helper()
	st := w.get(201, "POST", "/runs?wait=60s", fmt.Sprintf(`{"agent": "talker", "session": %q, "prompt": %q}`, session, prompt))
	if st["status"] != "done" {
		w.Fatalf("%s: %v", prompt, st)
	}
	return st["run"].(string)
}

// branches describes the branches of a session, one in each line.
func (w *world) branches(session string) string {
	w.Helper()
	var text strings.Builder
	for _, v := range w.get(200, "GET", "/sessions/talker/"+session+"/branches", "")["branches"].([]any) {
		b := v.(map[string]any)
		fmt.Fprintf(&text, "%v %v from=%v current=%v last=%v runs=%d\n", b["name"], b["session"], b["from"], b["current"], b["last"], len(b["runs"].([]any)))
	}
	return text.String()
}

// A message that was sent is replaced on another branch. Each branch is a session that continues by itself.
func TestBranches(t *testing.T) {
	w := newChatWorld(t)
	first, second := w.say("fruit", "tell me about apples"), w.say("fruit", "and pears")
	if read, newest := w.get(200, "GET", "/sessions/talker/fruit", "")["record"], w.get(200, "GET", "/runs/"+second+"/history?limit=1", "")["items"].([]any)[0].(map[string]any)["seq"]; read != newest {
		t.Errorf("read until record %v, the newest one is %v", read, newest)
	}
	if got := w.branches("fruit"); got != "main fruit from=0 current=true last=and pears runs=2\n" {
		t.Errorf("before: %s", got)
	}
	made := w.get(201, "POST", "/sessions/talker/fruit/branches", `{"before": "`+second+`"}`)["session"].(string)
	third := w.say(made, "and plums")
	want := "main fruit from=0 current=%t last=and pears runs=2\nb2 " + made + " from=1 current=%t last=and plums runs=2\n"
	if got := w.branches(made); got != fmt.Sprintf(want, false, true) {
		t.Errorf("on the branch: %s", got)
	}
	if got := w.branches("fruit"); got != fmt.Sprintf(want, true, false) {
		t.Errorf("on the first branch: %s", got)
	}
	said := jsonText(t, w.get(200, "GET", "/sessions/talker/"+made, "")["messages"])
	if !strings.Contains(said, "Apples are red.") || !strings.Contains(said, "Plums are blue.") || strings.Contains(said, "Pears") {
		t.Errorf("the branch: %s", said)
	}
	w.say("fruit", "more apples") // the first branch continues too
	if got := w.branches(made); !strings.Contains(got, "last=more apples runs=3") || !strings.Contains(got, "last=and plums runs=2") {
		t.Errorf("both continue: %s", got)
	}
	// A branch before the first turn has nothing of it; and a branch can be made from a branch.
	again := w.get(201, "POST", "/sessions/talker/fruit/branches", `{"before": "`+first+`"}`)["session"].(string)
	w.say(again, "only plums")
	if said := jsonText(t, w.get(200, "GET", "/sessions/talker/"+again, "")["messages"]); strings.Contains(said, "pples") {
		t.Errorf("a branch before the first turn: %s", said)
	}
	w.get(201, "POST", "/sessions/talker/"+made+"/branches", `{"before": "`+third+`"}`)

	w.refuse(404, "unknown-session", "GET", "/sessions/talker/none/branches", "")
	w.refuse(404, "unknown-session", "POST", "/sessions/talker/none/branches", `{"before": "`+first+`"}`)
	w.refuse(404, "unknown-agent", "GET", "/sessions/none/fruit/branches", "")
	w.refuse(400, "usage", "POST", "/sessions/talker/fruit/branches", `{"before": "`+third+`"}`) // a turn of another branch
	w.refuse(422, "invalid-request", "POST", "/sessions/talker/fruit/branches", `{}`)
	w.refuse(404, "unknown-session", "GET", "/sessions/ask/fruit/branches", "")
	open, err := conversation.Open(t.Context(), w.service.Process(), "talker", "fruit")
	if err != nil {
		t.Fatal(err)
	}
	w.refuse(409, "run-busy", "POST", "/sessions/talker/fruit/branches", `{"before": "`+first+`"}`)
	open.Close()
	w.caller = &server.Caller{Name: "ci", Scopes: []server.Scope{server.ScopeRead}}
	w.branches("fruit")
	w.refuse(403, "missing-scope", "POST", "/sessions/talker/fruit/branches", `{"before": "`+first+`"}`)
}

// A turn that waits for a permission is replaced on another branch. It waits on the first branch as before, and its question can be answered there.
func TestBranchOfWaitingTurn(t *testing.T) {
	w := serveHome(t, servertest.NewHome(t, map[string]string{
		"talker/config.yaml":     "name: talker\nmodel: script:transcript.yaml\nglobal_tools: [execute_command]\n",
		"talker/transcript.yaml": "- {match: plums, text: Plums are blue.}\n- {match: look, tool_calls: [{name: execute_command, args: {command: touch seen && echo found}}]}\n- {match: look, text: There is a file.}\n",
	}))
	w.say("fruit", "plums")
	waiting := w.get(201, "POST", "/runs?wait=60s", `{"agent": "talker", "session": "fruit", "prompt": "look"}`)
	if waiting["status"] != "waiting" {
		t.Fatal(waiting)
	}
	run := waiting["run"].(string)
	made := w.get(201, "POST", "/sessions/talker/fruit/branches", `{"before": "`+run+`"}`)["session"].(string)
	if got := w.branches(made); !strings.Contains(got, "main fruit from=0 current=false last=look runs=2\n") {
		t.Errorf("the branches: %s", got)
	}
	id := waiting["questions"].([]any)[0].(map[string]any)["id"].(string)
	w.get(200, "POST", "/runs/"+run+"/answers", `{"answers": [{"id": "`+id+`", "value": "no"}]}`)
	if st := w.get(200, "GET", "/sessions/talker/fruit", ""); st["run"] != run {
		t.Errorf("the first branch is at run %v", st["run"])
	}
}

// Conversations are found by their names and by what was said.
func TestSearchSessions(t *testing.T) {
	w := newChatWorld(t)
	w.say("fruit", "tell me about apples")
	w.say("other", "tell me about pears")
	for text, want := range map[string]string{"FRUIT": "fruit", "apples are RED": "fruit", "about pears": "other", "tell me": "fruit other", "bananas": "", "": "fruit other"} {
		var names []string
		for _, i := range w.get(200, "GET", "/sessions?agent=talker&text="+strings.ReplaceAll(text, " ", "+"), "")["items"].([]any) {
			names = append(names, i.(map[string]any)["session"].(string))
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
