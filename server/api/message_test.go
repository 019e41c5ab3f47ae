//go:build unix

package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"raddle.dev/internal/process/app"
	"raddle.dev/server"
	"raddle.dev/server/servertest"
)

// newTalkWorld is a service with an agent of a held model, and a graph.
func newTalkWorld(t *testing.T) (*world, *servertest.HeldModel, *servertest.Home) {
	m := servertest.StartHeldModel(t)
	home := servertest.NewHome(t, map[string]string{
		"talker/config.yaml": "name: talker\nmodel: held:m\n",
		"gate/graph.yaml":    "name: gate\nstart: ask\nnodes:\n  ask: {type: input, question: Go?, next: end}\n  end: {type: end, output: gone}\n",
		"../config.yaml":     m.Config(),
	})
	return serveHome(t, home), m, home
}

// tell sends a message to a run and returns the status and the problem.
func (w *world) tell(run, text string) (status int, problem string) {
	w.Helper()
	body, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		w.Fatal(err)
	}
	res := w.send(http.MethodPost, "/runs/"+run+"/messages", string(body))
	raw, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(raw)
}

// What is said to an agent while its turn works continues the turn, from this process and from another one; after the end
// it is refused, and so is what a graph or nobody can take.
func TestMessagesOverTheAPI(t *testing.T) {
	w, m, home := newTalkWorld(t)
	run := w.get(http.StatusCreated, http.MethodPost, "/runs", `{"agent":"talker","prompt":"How high?"}`)["run"].(string)
	if got := <-m.Asked; got != "How high?" {
		t.Errorf("the first request says %q", got)
	}
	if status, problem := w.tell(run, "Use metres."); status != http.StatusNoContent {
		t.Errorf("a message to a working run: %d %s", status, problem)
	}
	other, err := app.Open(app.Options{Work: home.Work, Environ: []string{"HOME=" + home.Dir, "PATH=" + os.Getenv("PATH")}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	for range 3 { // the answer to the first one was lost
		if err := other.SendMessage(t.Context(), app.MessageRequest{Run: run, Text: "Be brief.", ID: "m-2"}); err != nil {
			t.Errorf("a message from another process: %v", err)
		}
	}
	m.Reply <- "29 feet"
	if got := <-m.Asked; got != "How high? | Use metres.\n\nBe brief." {
		t.Errorf("the second request says %q", got)
	}
	m.Reply <- "9 m"
	if st, err := w.service.WaitRun(t.Context(), run); err != nil || st.Output != "9 m" {
		t.Errorf("the run ends with %v %v", st, err)
	}
	if err := other.SendMessage(t.Context(), app.MessageRequest{Run: run, Text: "Be brief.", ID: "m-2"}); err != nil {
		t.Errorf("again after the end of the run: %v", err)
	}
	if status, problem := w.tell(run, "Sure?"); status != http.StatusConflict || !strings.Contains(problem, "has ended") {
		t.Errorf("a message to a run that has ended: %d %s", status, problem)
	}
	if err := other.SendMessage(t.Context(), app.MessageRequest{Run: run, Text: "Sure?"}); !strings.Contains(fmt.Sprint(err), "has ended") {
		t.Errorf("from another process: %v", err)
	}
	gate := w.get(http.StatusCreated, http.MethodPost, "/runs?wait=30s", `{"agent":"gate"}`)["run"].(string)
	for _, c := range []struct {
		run, text string
		status    int
		says      string
	}{
		{gate, "hello", http.StatusBadRequest, "raddle inbox"},
		{"1m8mnpg6brqt8xfsw", "hello", http.StatusNotFound, "unknown run"},
		{run, "", http.StatusUnprocessableEntity, "length"},
		{gate, " \n", http.StatusBadRequest, "empty"},
	} {
		if status, problem := w.tell(c.run, c.text); status != c.status || !strings.Contains(problem, c.says) {
			t.Errorf("%q to %s: %d %s", c.text, c.run, status, problem)
		}
	}
	w.caller = &server.Caller{Name: "reader", Scopes: []server.Scope{server.ScopeRead}}
	if status, _ := w.tell(run, "hello"); status != http.StatusForbidden {
		t.Errorf("with the scope read: %d", status)
	}
}

// A message that was confirmed is not lost when the server stops before the agent has taken it up: the drive that
// continues the run begins with it. One that is sent while nothing drives the run waits for that.
func TestMessageSurvivesTheServer(t *testing.T) {
	m := servertest.StartHeldModel(t)
	home := servertest.NewHome(t, map[string]string{
		"talker/config.yaml": "name: talker\nmodel: held:m\n",
		"../config.yaml":     m.Config(),
	})
	s, stop := home.Serve()
	run, err := s.StartRun(t.Context(), server.StartRequest{Agent: "talker", Prompt: "How high?"})
	if err != nil {
		t.Fatal(err)
	}
	<-m.Asked
	if err := s.SendMessage(t.Context(), server.MessageRequest{Run: run, Text: "Use metres."}); err != nil {
		t.Fatal(err)
	}
	home.Timeout = 1 // the drive is cut off
	stop()
	p, err := app.Open(app.Options{Work: home.Work, Environ: []string{"HOME=" + home.Dir, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if err := p.SendMessage(t.Context(), app.MessageRequest{Run: run, Text: "Be brief."}); err != nil {
		t.Errorf("a message to a run that nothing drives: %v", err)
	}
	resumed, err := p.ResumeRun(t.Context(), run, app.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer resumed.Close()
	go func() {
		m.Reply <- "29 feet"
		m.Reply <- "9 m"
	}()
	res, err := resumed.Drive(t.Context(), app.Driver{})
	if err != nil {
		t.Fatal(res.Status, err)
	}
	if first, second := <-m.Asked, <-m.Asked; first != "How high?" || second != "How high? | Use metres.\n\nBe brief." {
		t.Errorf("the requests after the server has stopped say %q and %q", first, second)
	}
}
