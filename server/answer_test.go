package server

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// bothGraph asks in one branch and works in the other.
const bothGraph = `
name: both
start: split
nodes:
  split: {type: script, script: split.sh, next: [interview, job]}
  interview: {type: agent, agent: ask, prompt: x, next: last}
  job: {type: agent, agent: wait, prompt: x, next: last}
  last: {type: end, output: both are done}
`

// callAs returns a context of requests with a token.
func callAs(t *testing.T, name string) context.Context {
	return WithCaller(t.Context(), Caller{Name: name, Scopes: Scopes})
}

// A question in one branch is answered while another branch works: the answer is checked and recorded at once, with the
// name of its caller, and the run needs no other drive.
func TestAnswerWhileAnotherBranchWorks(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.home, ".config", "raddle", "agents", "both")
	w.write(filepath.Join(dir, "graph.yaml"), bothGraph)
	w.write(filepath.Join(dir, "split.sh"), "echo '{}'\n")
	s := w.serve(Options{Network: true})
	ctx := callAs(t, "ann")
	run, err := s.StartRun(ctx, StartRequest{Agent: "both", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	reading := WithCaller(t.Context(), Caller{Name: "reader", Scopes: []Scope{ScopeRead}})
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if st, err := s.ReadState(reading, run); err == nil && len(st.Questions) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("nothing was asked")
		}
	}
	w.awaitEffects(2) // first.sh, and work.sh, which does not end
	const id = "interview/ask"
	if _, err := s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: 7}}}); !errors.As(err, new(*graph.AnswerError)) {
		t.Fatalf("an answer that does not fit: %v", err)
	}
	if now, err := s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: "Eve"}}}); err != nil || len(now.Open) > 0 || now.At.At == 0 {
		t.Fatalf("%+v, %v", now, err)
	}
	given, err := s.process.Runs.FindAnswer(t.Context(), run, id)
	if err != nil || given == nil || given.By != "ann" {
		t.Fatalf("recorded while the other branch works: %+v, %v", given, err)
	}
	_, err = s.AnswerRun(callAs(t, "bob"), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: "Bob"}}})
	if late, ok := errors.AsType[*runs.AnsweredError](err); !ok || late.Answer.By != "ann" || !late.Answer.At.Equal(given.At) {
		t.Fatalf("a second answer: %v", err)
	}
	w.letGo()
	st, err := s.WaitRun(ctx, run)
	if err != nil || st.Status != "done" || st.Output != "both are done" {
		t.Fatalf("%+v, %v", st, err)
	}
	if _, err = s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: "Eve"}}}); !errors.As(err, new(*runs.AnsweredError)) {
		t.Errorf("an answer after the end: %v", err)
	}
	if n := strings.Count(strings.Join(w.effects(), " "), "first"); n != 1 {
		t.Errorf("first.sh ran %d times", n)
	}
}

// Of several callers that answer one question at once, one wins, and the others learn what was answered, by whom and when, also if they do not name the
// question.
func TestOneAnswerWins(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	for round := range 6 {
		id := []string{"ask", ""}[round%2]
		run := start(t, s, "ask")
		wait(t, s, run, "waiting")
		names := []string{"ann", "bob", "eve"}
		errs := make([]error, len(names))
		var all sync.WaitGroup
		for i, name := range names {
			all.Go(func() {
				_, errs[i] = s.AnswerRun(callAs(t, name), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: name}}})
			})
		}
		all.Wait()
		wait(t, s, run, "done")
		given, err := s.process.Runs.FindAnswer(t.Context(), run, "ask")
		if err != nil || given == nil {
			t.Fatal(given, err)
		}
		for i, name := range names {
			late, ok := errors.AsType[*runs.AnsweredError](errs[i])
			if won := given.By == name; won != (errs[i] == nil) || !won && (!ok || late.Answer.By != given.By || string(late.Answer.Value) != `"`+given.By+`"` || !strings.Contains(errs[i].Error(), `answered "`+given.By+`" by `+given.By+" at ")) {
				t.Errorf("%s won, and %s gets: %v", given.By, name, errs[i])
			}
		}
	}
}

// What a caller changes in a run has the name of its token, in the history and in events; the command line records none.
func TestNamesOfCallers(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "ask")
	wait(t, s, run, "waiting")
	ctx := callAs(t, "ci")
	copied, _, err := s.process.Runs.ForkRun(ctx, run, runs.ForkChanges{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CancelRun(ctx, copied); err != nil {
		t.Fatal(err)
	}
	if _, err := s.AnswerRun(ctx, AnswerRequest{Run: run, Answers: []graph.Answer{{ID: "ask", Value: "Eve", By: "someone else"}}}); err != nil {
		t.Fatal(err)
	}
	wait(t, s, run, "done")
	for id, want := range map[string]string{run: "answer ci", copied: "fork ci, end ci"} {
		var named []string
		story, err := s.process.Runs.ReadStory(t.Context(), id, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range story {
			if m.By != "" {
				named = append(named, m.Kind.String()+" "+m.By)
			}
		}
		if got := strings.Join(named, ", "); got != want {
			t.Errorf("run %s: %s; want %s", id, got, want)
		}
	}
	events, err := read(t.Context(), t, s, run, SubscribeOptions{})()
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, ev := range events {
		if b, ok := ev.Body.(graph.QuestionAnswered); ok {
			by = append(by, b.By)
		}
	}
	if len(by) != 1 || by[0] != "ci" {
		t.Errorf("events: answered by %q", by)
	}
	local, err := s.StartRun(t.Context(), StartRequest{Agent: "ask", Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	wait(t, s, local, "waiting")
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: local, Answers: []graph.Answer{{Value: "Eve"}}}); err != nil {
		t.Fatal(err)
	}
	wait(t, s, local, "done")
	var given *runs.Answer
	if given, err = s.process.Runs.FindAnswer(t.Context(), local, "ask"); err != nil || given == nil || given.By != "" {
		t.Errorf("without a caller: %+v, %v", given, err)
	}
}

// A subscription at the position of a state has what came after the state was read, and nothing before it.
func TestPositionOfAState(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "ask")
	wait(t, s, run, "waiting")
	st, err := s.ReadState(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: "ask", Value: "Eve"}}}); err != nil {
		t.Fatal(err)
	}
	wait(t, s, run, "done")
	whole, err := read(t.Context(), t, s, run, SubscribeOptions{})()
	if err != nil {
		t.Fatal(err)
	}
	rest, err := read(t.Context(), t, s, run, SubscribeOptions{After: st.Position()})()
	if err != nil || len(rest) == 0 || len(rest) >= len(whole) {
		t.Fatalf("%d of %d events come after the state, %v", len(rest), len(whole), err)
	}
	isQuestion := func(e Event) bool { _, ok := e.Body.(graph.QuestionAsked); return ok }
	if !slices.ContainsFunc(whole, isQuestion) || slices.ContainsFunc(rest, isQuestion) {
		t.Errorf("the question was asked before the state: %v, and then %v", whole, rest)
	}
}

// An answer that comes before its question waits for it, and not for the end of the other branches.
func TestAnswerBeforeItsQuestion(t *testing.T) {
	w := newWorld(t)
	agents := filepath.Join(w.home, ".config", "raddle", "agents")
	w.write(filepath.Join(agents, "both", "graph.yaml"), strings.Replace(bothGraph, "agent: ask,", "agent: late,", 1))
	w.write(filepath.Join(agents, "both", "split.sh"), "echo '{}'\n")
	w.write(filepath.Join(agents, "late", "graph.yaml"), strings.NewReplacer("name: ask", "name: late", "first.sh", "late.sh").Replace(askGraph))
	w.write(filepath.Join(agents, "late", "late.sh"), "while [ ! -e "+filepath.Join(w.work, "late")+" ]; do sleep 0.02; done\necho '{}'\n")
	w.write(filepath.Join(agents, "late", "last.sh"), "echo '{}'\n")
	s := w.serve(Options{})
	run := start(t, s, "both")
	w.awaitEffects(1) // work.sh, which does not end
	answered := make(chan error)
	go func() {
		_, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: "interview/ask", Value: "Eve"}}})
		answered <- err
	}()
	w.write(filepath.Join(w.work, "late"), "")
	if err := <-answered; err != nil || s.findDrive(run) == nil {
		t.Errorf("after the other branch: %v", err)
	}
	w.letGo()
	wait(t, s, run, "done")
}

// A run that another service works on is answered and cancelled from here, while its other branch works.
func TestAnswerARunOfAnotherService(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.home, ".config", "raddle", "agents", "both")
	w.write(filepath.Join(dir, "graph.yaml"), bothGraph)
	w.write(filepath.Join(dir, "split.sh"), "echo '{}'\n")
	far := w.serve(Options{})
	near := w.serve(Options{NoWorker: true})
	for i, cancel := range []bool{false, true} {
		run := start(t, far, "both")
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			if st, err := far.ReadState(t.Context(), run); err == nil && len(st.Questions) > 0 {
				break
			}
			if time.Now().After(end) {
				t.Fatal("nothing was asked")
			}
		}
		w.awaitEffects(2 * (i + 1)) // the run works
		if cancel {
			if err := near.CancelRun(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			wait(t, near, run, "abandoned")
			break
		}
		const id = "interview/ask"
		if _, err := near.AnswerRun(callAs(t, "ann"), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: 7}}}); !errors.As(err, new(*graph.AnswerError)) {
			t.Fatalf("an answer that does not fit: %v", err)
		}
		if now, err := near.AnswerRun(callAs(t, "ann"), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Eve"}}}); err != nil || len(now.Open) > 0 || now.At.At == 0 {
			t.Fatalf("%+v, %v", now, err)
		}
		given, err := near.process.Runs.FindAnswer(t.Context(), run, id)
		if err != nil || given == nil || given.By != "ann" {
			t.Fatalf("recorded while the other branch works: %+v, %v", given, err)
		}
		_, err = near.AnswerRun(callAs(t, "bob"), AnswerRequest{Run: run, Answers: []graph.Answer{{ID: id, Value: "Bob"}}})
		if late, ok := errors.AsType[*runs.AnsweredError](err); !ok || late.Answer.By != "ann" {
			t.Fatalf("a second answer: %v", err)
		}
		w.letGo()
		if st := wait(t, far, run, "done"); st.Output != "both are done" {
			t.Errorf("%+v", st)
		}
		if err := os.Remove(filepath.Join(w.work, "go")); err != nil {
			t.Fatal(err)
		}
	}
	if near.IsDraining() || far.IsDraining() {
		t.Error("a service has ended")
	}
}

// An event that a service is sent continues the runs that wait for it, also those that another service has parked.
func TestSendEventToRunsOfServices(t *testing.T) {
	w := newWorld(t)
	w.write(filepath.Join(w.home, ".config", "raddle", "agents", "shop", "graph.yaml"), `
name: shop
start: pay
nodes:
  pay: {type: wait, event: paid, match: {order: "{{initial_prompt}}"}, state_updates: {how: "{{event.method}}"}, next: end}
  end: {type: end, output: "paid by {{how}}"}
`)
	far := w.serve(Options{Recover: true})
	near := w.serve(Options{NoWorker: true})
	run := start(t, far, "shop")
	if st := wait(t, far, run, "waiting"); len(st.Questions) != 0 {
		t.Errorf("the event is a question that a protocol would ask: %+v", st.Questions)
	}
	_, err := near.AnswerRun(callAs(t, "ann"), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "the next message of a chat"}}})
	if !errors.As(err, new(*graph.AnswerError)) {
		t.Errorf("an answer without an id is taken for the event: %v", err)
	}
	reading := WithCaller(t.Context(), Caller{Name: "reader", Scopes: []Scope{ScopeRead}})
	req := app.EventRequest{Name: "paid", Key: "k", Data: json.RawMessage(`{"order": "x", "method": "card"}`)}
	if _, err := near.SendEvent(reading, req); err == nil {
		t.Error("a caller that may only read sends an event")
	}
	sent, err := near.SendEvent(callAs(t, "ann"), req)
	if err != nil || len(sent.Runs) != 1 || sent.Runs[0] != run {
		t.Fatalf("%+v, %v", sent, err)
	}
	if st := wait(t, far, run, "done"); st.Output != "paid by card" {
		t.Errorf("%+v", st)
	}
}
