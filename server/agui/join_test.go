package agui

import (
	"net/http"
	"strings"
	"testing"

	"raddle.dev/server/servertest"
)

// A message on a thread whose agent works joins the turn: its client gets what comes from there on, also when it sends the
// same input again, and the first client gets the whole.
func TestMessageJoinsTheTurn(t *testing.T) {
	m := servertest.StartHeldModel(t)
	w := newWorld(t)
	w.Write("../config.yaml", m.Config())
	w.Write("talker/config.yaml", "name: talker\nmodel: held:m\n")
	w.serve()
	started := make(chan bool)
	ended := make(chan []sent)
	first := w.request(t.Context(), "talker", makeInput("t", "r1", "How high?"))
	go func() {
		var events []sent
		for e := range readEvents(t, first) {
			if events = append(events, e); e.kind() == runStarted {
				close(started)
			}
		}
		ended <- events
	}()
	<-started
	if got := <-m.Asked; got != "How high?" {
		t.Errorf("the first request says %q", got)
	}
	second := makeInput("t", "r2", "How high?")
	second["messages"] = append(second["messages"].([]any), map[string]any{"id": "m-r2", "role": "user", "content": "Use metres."})
	second["messages"].([]any)[0].(map[string]any)["id"] = "m-r1"
	joined := []*http.Response{w.request(t.Context(), "talker", second), w.request(t.Context(), "talker", second)}
	m.Reply <- "29 feet"
	if got := <-m.Asked; got != "How high? | Use metres." {
		t.Errorf("the second request says %q", got)
	}
	m.Reply <- "9 m"
	expect(t, <-ended, "RUN_STARTED TEXT_MESSAGE_START 29 feet TEXT_MESSAGE_END TEXT_MESSAGE_START 9 m TEXT_MESSAGE_END RUN_FINISHED(success)")
	for _, resp := range joined {
		var events []sent
		for e := range readEvents(t, resp) {
			events = append(events, e)
		}
		if problem := checkOrder(events); problem != "" {
			t.Errorf("%s in %v", problem, kinds(events))
		}
		expect(t, events, "RUN_STARTED TEXT_MESSAGE_START 9 m TEXT_MESSAGE_END RUN_FINISHED(success)")
		if got := snapshotOf(events); got != "How high?, 29 feet, Use metres., 9 m" {
			t.Errorf("the conversation of the client is %s", got)
		}
	}
}

// snapshotOf returns the texts of the last snapshot of the messages.
func snapshotOf(events []sent) string {
	var texts []string
	for _, e := range events {
		if e.kind() != messagesSnapshot {
			continue
		}
		texts = nil
		for _, m := range e["messages"].([]any) {
			text, _ := m.(map[string]any)["content"].(string)
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, ", ")
}
