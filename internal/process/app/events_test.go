//go:build unix

package app

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/pgtest"
	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/internal/testkit/testfile"
)

// shopFiles are an agent that waits for the payment of its order, and one that asks while another branch works.
var shopFiles = map[string]string{
	"shop/graph.yaml": `
name: shop
start: pay
nodes:
  pay: {type: wait, event: paid, match: {order: "{{initial_prompt}}"}, state_updates: {how: "{{event.method}}"}, next: end}
  end: {type: end, output: "paid by {{how}}"}
`,
	"twice/graph.yaml": `
name: twice
start: one
nodes:
  one: {type: wait, event: paid, state_updates: {how: "{{event.method}}"}, next: two}
  two: {type: wait, event: paid, state_updates: {how: "{{how}}, {{event.method}}"}, next: end}
  end: {type: end, output: "{{how}}"}
`,
	"busy/graph.yaml": `
name: busy
start: both
initial_state: {work: ""}
reducers: {work: concat}
nodes:
  both: {type: script, script: first.sh, state_updates: {}, next: [slow, pay]}
  slow: {type: script, script: slow.sh, state_updates: {}, next: join}
  pay: {type: wait, event: paid, state_updates: {how: "{{event.method}}"}, next: join}
  join: {type: end, output: "{{work}} {{how}}"}
`,
	"busy/first.sh": "#!/bin/sh\necho '{}'\n",
	"busy/slow.sh":  "#!/bin/sh\ntouch \"$RADDLE_WORKSPACE/started\"\nwhile ! [ -e \"$RADDLE_WORKSPACE/go\" ]; do sleep 0.02; done\necho '{\"work\": \"worked\"}'\n",
}

// shop returns two processes with one store, and their working directory.
func shop(t *testing.T) (a, b *Process, work string) {
	t.Helper()
	return shopOn(t, "")
}

// shopOn is shop with the URL of a store; "": SQLite.
func shopOn(t *testing.T, store string) (a, b *Process, work string) {
	t.Helper()
	work = t.TempDir()
	for name, text := range shopFiles {
		testfile.WriteFile(t, filepath.Join(work, name), text)
		if strings.HasSuffix(name, ".sh") {
			if err := os.Chmod(filepath.Join(work, name), 0o700); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := func() *Process {
		p, err := Open(Options{Store: store, Work: work, Environ: []string{"HOME=" + filepath.Join(work, "home"), "PATH=" + os.Getenv("PATH")}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = p.Close() })
		p.Tools.NoBox = true
		return p
	}
	return open(), open(), work
}

// park starts a run of an agent and requires that it waits.
func park(t *testing.T, p *Process, agent, prompt string) string {
	t.Helper()
	run, err := p.StartRun(Request{Agent: "./" + agent, Prompt: prompt})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Waiting {
		t.Fatal(res.Status, err)
	}
	return run.ID
}

// driveHere returns a ContinueFunc that drives runs in a process.
func driveHere(p *Process) ContinueFunc {
	return func(ctx context.Context, id string, answers []graph.Answer) error {
		run, err := p.ResumeRun(ctx, id, ResumeOptions{})
		if err != nil {
			return err
		}
		defer run.Close()
		_, err = run.Drive(ctx, Driver{Begin: answers})
		return err
	}
}

// outputOf returns the status and the output of a run.
func outputOf(t *testing.T, p *Process, id string) string {
	t.Helper()
	v, err := p.Runs.ReadView(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return v.Status + " " + flow.OutcomeOf(graph.Result{Value: v.Snapshot.Result}).Output
}

// An event continues exactly the runs that wait for it, and no run twice.
func TestSendEvent(t *testing.T) {
	a, b, _ := shop(t)
	seven, eight := park(t, a, "shop", "7"), park(t, a, "shop", "8")
	sent, err := b.SendEvent(t.Context(), EventRequest{Name: "paid", Key: "k", Data: json.RawMessage(`{"order": 7, "method": "card"}`)}, driveHere(b))
	if err != nil || !slices.Equal(sent.Runs, []string{seven}) || sent.Kept || sent.Again {
		t.Fatalf("%+v, %v", sent, err)
	}
	if got := outputOf(t, a, seven); !strings.Contains(got, "paid by card") {
		t.Errorf("the run is %s", got)
	}
	if got := outputOf(t, a, eight); !strings.HasPrefix(got, "waiting") {
		t.Errorf("the other run is %s", got)
	}
	again, err := a.SendEvent(t.Context(), EventRequest{Name: "paid", Key: "k", Data: json.RawMessage(`{"order":7,"method":"card"}`)}, driveHere(a))
	if err != nil || !again.Again || !slices.Equal(again.Runs, []string{seven}) {
		t.Errorf("sent again: %+v, %v", again, err)
	}
	_, err = a.SendEvent(t.Context(), EventRequest{Name: "paid", Key: "k", Data: json.RawMessage(`{"order":8}`)}, driveHere(a))
	if wrong, ok := errors.AsType[*failure.Error](err); !ok || wrong.Kind != failure.Usage {
		t.Errorf("the key with other data: %v", err)
	}
}

// A sender that was killed in the middle completes its work when it sends the event again.
func TestSendEventAfterKill(t *testing.T) {
	a, _, _ := shop(t)
	id := park(t, a, "shop", "7")
	req := EventRequest{Name: "paid", Key: "k", Data: json.RawMessage(`{"order": 7, "method": "card"}`)}
	killed := errors.New("killed")
	for _, when := range []ContinueFunc{
		func(context.Context, string, []graph.Answer) error { panic(killed) },
		func(ctx context.Context, run string, answers []graph.Answer) error {
			_ = driveHere(a)(ctx, run, answers)
			panic(killed)
		},
	} {
		func() {
			defer func() { _ = recover() }()
			_, _ = a.SendEvent(t.Context(), req, when)
		}()
	}
	sent, err := a.SendEvent(t.Context(), req, driveHere(a))
	if err != nil || !sent.Again || !slices.Equal(sent.Runs, []string{id}) {
		t.Errorf("%+v, %v", sent, err)
	}
	if got := outputOf(t, a, id); !strings.Contains(got, "paid by card") {
		t.Errorf("the run is %s", got)
	}
}

// An event that comes before its wait is kept for one run, and an expired one for none.
func TestSendEventBeforeItsWait(t *testing.T) {
	a, b, _ := shop(t)
	data := json.RawMessage(`{"order": "7", "method": "cash"}`)
	sent, err := a.SendEvent(t.Context(), EventRequest{Name: "paid", Data: data}, driveHere(a))
	if err != nil || !sent.Kept || len(sent.Runs) != 0 {
		t.Fatalf("%+v, %v", sent, err)
	}
	park(t, b, "shop", "8") // does not match
	run, err := b.StartRun(Request{Agent: "./shop", Prompt: "7"})
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Done {
		t.Fatal(res.Status, err)
	}
	if got := outputOf(t, a, run.ID); !strings.Contains(got, "paid by cash") {
		t.Errorf("the run is %s", got)
	}
	park(t, a, "shop", "7") // the event was taken
	if again, err := a.SendEvent(t.Context(), EventRequest{Name: "paid", Key: sent.Key, Data: data}, driveHere(a)); err != nil || !slices.Equal(again.Runs, []string{run.ID}) {
		t.Errorf("the event: %+v, %v", again, err)
	}
}

// A run takes an event once, although it waits for its name twice.
func TestSendEventTwice(t *testing.T) {
	a, _, _ := shop(t)
	id := park(t, a, "twice", "")
	for _, method := range []string{"card", "cash"} {
		if sent, err := a.SendEvent(t.Context(), EventRequest{Name: "paid", Data: json.RawMessage(`{"method": "` + method + `"}`)}, driveHere(a)); err != nil || len(sent.Runs) != 1 {
			t.Fatalf("%+v, %v", sent, err)
		}
	}
	if got := outputOf(t, a, id); !strings.Contains(got, "card, cash") {
		t.Errorf("the run is %s", got)
	}
}

// A run that works in another process takes an event at once, while its other branch works.
func TestSendEventToAWorkingRun(t *testing.T) {
	a, b, work := shop(t)
	id, done := driveBusy(t, a, work)
	sent, err := b.SendEvent(t.Context(), EventRequest{Name: "paid", Data: json.RawMessage(`{"method": "card"}`)}, driveHere(b))
	if err != nil || !slices.Equal(sent.Runs, []string{id}) {
		t.Fatalf("%+v, %v", sent, err)
	}
	if given, err := b.Runs.FindAnswer(t.Context(), id, "pay"); err != nil || given == nil {
		t.Errorf("the event is not in the journal: %+v, %v", given, err)
	}
	testfile.WriteFile(t, filepath.Join(work, "go"), "")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := outputOf(t, b, id); !strings.Contains(got, "worked card") {
		t.Errorf("the run is %s", got)
	}
}

// Answers reach a run that works in another process; wrong ones come back with their reason, and those of a run that has
// stopped are left to the caller.
func TestSendAnswers(t *testing.T) {
	a, b, work := shop(t)
	id, done := driveBusy(t, a, work)
	_, err := b.SendAnswers(t.Context(), id, []graph.Answer{{ID: "nonsense", Value: "x"}})
	if wrong, ok := errors.AsType[*graph.AnswerError](err); !ok || !slices.Equal(wrong.Open, []string{"pay"}) {
		t.Errorf("to a question that is not open: %v", err)
	}
	if handed, err := b.SendAnswers(t.Context(), id, []graph.Answer{{ID: "pay", Value: map[string]any{"method": "cheque"}, By: "ada"}}); !handed || err != nil {
		t.Fatal(handed, err)
	}
	given, err := b.Runs.FindAnswer(t.Context(), id, "pay")
	if err != nil || given == nil || given.By != "ada" {
		t.Errorf("the answer in the journal: %+v, %v", given, err)
	}
	testfile.WriteFile(t, filepath.Join(work, "go"), "")
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := outputOf(t, b, id); !strings.Contains(got, "worked cheque") {
		t.Errorf("the run is %s", got)
	}
	parked := park(t, a, "shop", "7")
	if handed, err := b.SendAnswers(t.Context(), parked, []graph.Answer{{ID: "pay", Value: "x"}}); handed || err != nil {
		t.Errorf("to a run that nothing drives: %v, %v", handed, err)
	}
	box, err := b.openMail()
	if err != nil {
		t.Fatal(err)
	}
	if letters, err := box.ListLetters(t.Context()); err != nil || len(letters) != 0 {
		t.Errorf("letters are left: %+v, %v", letters, err)
	}
}

// driveBusy drives a run whose one branch waits for an event while the other works.
func driveBusy(t *testing.T, p *Process, work string) (id string, done chan error) {
	t.Helper()
	run, err := p.StartRun(Request{Agent: "./busy"})
	if err != nil {
		t.Fatal(err)
	}
	done = make(chan error, 1)
	go func() {
		defer run.Close()
		_, err := run.Drive(context.Background(), Driver{Ask: trustAll})
		done <- err
	}()
	for {
		detail, err := p.Runs.ReadRunDetail(t.Context(), run.ID)
		_, started := os.Stat(filepath.Join(work, "started"))
		if err == nil && len(detail.Snapshot.Questions) == 1 && detail.Snapshot.Questions[0].Kind == graph.KindEvent && started == nil {
			return run.ID, done
		}
		if err != nil && !errors.As(err, new(*runs.UnknownError)) {
			t.Fatal(err)
		}
		select {
		case err := <-done:
			t.Fatalf("the run has ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// trustAll consents to the scripts of an agent.
func trustAll(_ context.Context, open []graph.Question) (answers []graph.Answer, park bool, err error) {
	for _, q := range graph.ForPeople(open) {
		answers = append(answers, graph.Answer{ID: q.ID, Value: "yes"})
	}
	return answers, false, nil
}

// driveUntilItAsks drives a run, and returns when it asks once. The question stays open until its context ends, of which
// causes gets the cause; done gets the error of the drive.
func driveUntilItAsks(run *Run) (causes, done <-chan error) {
	asked := make(chan bool)
	cause := make(chan error, 1)
	end := make(chan error, 1)
	go func() {
		_, err := run.Drive(context.Background(), Driver{Ask: func(ctx context.Context, _ []graph.Question) ([]graph.Answer, bool, error) {
			close(asked)
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return nil, true, ctx.Err()
		}})
		run.Close()
		end <- err
	}()
	<-asked
	return cause, end
}

// An answer from elsewhere ends the question here. One that does not fit leaves it.
func TestSendAnswersToARunThatAsks(t *testing.T) {
	a, b, work := shop(t)
	testfile.WriteFile(t, filepath.Join(work, "asker", "graph.yaml"), "name: asker\nstart: ask\nnodes:\n"+
		"  ask: {type: input, question: 'Well?', validation: len(input) > 3, state_updates: {said: '{{input}}'}, next: end}\n  end: {type: end, output: '{{said}}'}\n")
	run, err := a.StartRun(Request{Agent: "./asker"})
	if err != nil {
		t.Fatal(err)
	}
	causes, done := driveUntilItAsks(run)
	_, err = b.SendAnswers(t.Context(), run.ID, []graph.Answer{{ID: "ask", Value: "no"}})
	if wrong, ok := errors.AsType[*graph.AnswerError](err); !ok || !strings.Contains(wrong.Reason, "len(input) > 3") {
		t.Errorf("an answer that does not fit: %v", err)
	}
	if handed, err := b.SendAnswers(t.Context(), run.ID, []graph.Answer{{ID: "ask", Value: "well done"}}); !handed || err != nil {
		t.Fatal(handed, err)
	}
	if cause := <-causes; !errors.Is(cause, ErrAnsweredElsewhere) {
		t.Errorf("the question has ended because of %v", cause)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := outputOf(t, b, run.ID); got != "done well done" {
		t.Errorf("the run is %s", got)
	}
}

// A run that is cancelled from elsewhere while it asks has no answer from there.
func TestCancelARunThatAsks(t *testing.T) {
	a, b, work := shop(t)
	testfile.WriteFile(t, filepath.Join(work, "asker", "graph.yaml"), asker)
	run, err := a.StartRun(Request{Agent: "./asker"})
	if err != nil {
		t.Fatal(err)
	}
	causes, done := driveUntilItAsks(run)
	if _, err := RecordChange(t.Context(), b, RunChange{ID: run.ID, Cancel: true}); err != nil {
		t.Fatal(err)
	}
	if cause := <-causes; cause == nil || errors.Is(cause, ErrAnsweredElsewhere) {
		t.Errorf("the question has ended because of %v", cause)
	}
	if err := <-done; !errors.Is(err, ErrStoppedElsewhere) {
		t.Errorf("the drive ends with %v", err)
	}
	if got := outputOf(t, b, run.ID); !strings.HasPrefix(got, "abandoned") {
		t.Errorf("the run is %s", got)
	}
}

// What a run waited for is forgotten when its question is answered, by any process.
func TestWaitsAreForgotten(t *testing.T) {
	a, b, _ := shop(t)
	box, err := a.openMail()
	if err != nil {
		t.Fatal(err)
	}
	count := func() int {
		list, err := box.ListWaits(t.Context(), "paid")
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	id := park(t, a, "twice", "")
	if n := count(); n != 1 {
		t.Errorf("%d questions wait, want 1", n)
	}
	for _, answered := range []struct {
		question string
		left     int
	}{{"one", 1}, {"two", 0}} {
		if err := driveHere(b)(t.Context(), id, []graph.Answer{{ID: answered.question, Value: map[string]any{"method": "by hand"}}}); err != nil {
			t.Fatal(err)
		}
		if n := count(); n != answered.left {
			t.Errorf("after %s %d questions wait, want %d", answered.question, n, answered.left)
		}
	}
}

// An event without a name that a store can keep is refused.
func TestSendEventWithAWrongName(t *testing.T) {
	a, _, _ := shop(t)
	for _, req := range []EventRequest{{Name: " "}, {Name: strings.Repeat("x", 201)}, {Name: "paid", Key: strings.Repeat("x", 301)}} {
		_, err := a.SendEvent(t.Context(), req, driveHere(a))
		if wrong, ok := errors.AsType[*failure.Error](err); !ok || wrong.Kind != failure.Usage {
			t.Errorf("%q with the key %q: %v", req.Name, req.Key, err)
		}
	}
}

// On servers of databases it is the same: an event for a run that waits, one that came before, and answers to a run that
// works elsewhere.
func TestExtraMail(t *testing.T) {
	for name, start := range map[string]func() string{
		"postgres": func() string { return pgtest.NewDatabase(t) },
		"redis":    func() string { return redistest.Start(t, "--appendonly", "yes").URL },
	} {
		t.Run(name, func(t *testing.T) {
			a, b, work := shopOn(t, start())
			id := park(t, a, "shop", "7")
			sent, err := b.SendEvent(t.Context(), EventRequest{Name: "paid", Data: json.RawMessage(`{"order": 7, "method": "card"}`)}, driveHere(b))
			if err != nil || !slices.Equal(sent.Runs, []string{id}) {
				t.Fatalf("%+v, %v", sent, err)
			}
			if sent, err = b.SendEvent(t.Context(), EventRequest{Name: "paid", Data: json.RawMessage(`{"order": 8, "method": "cash"}`)}, driveHere(b)); err != nil || !sent.Kept {
				t.Fatalf("%+v, %v", sent, err)
			}
			run, err := a.StartRun(Request{Agent: "./shop", Prompt: "8"})
			if err != nil {
				t.Fatal(err)
			}
			defer run.Close()
			if res, err := run.Drive(t.Context(), Driver{}); err != nil || res.Status != graph.Done {
				t.Fatal(res.Status, err)
			}
			busy, done := driveBusy(t, a, work)
			if handed, err := b.SendAnswers(t.Context(), busy, []graph.Answer{{ID: "pay", Value: map[string]any{"method": "cheque"}}}); !handed || err != nil {
				t.Fatal(handed, err)
			}
			testfile.WriteFile(t, filepath.Join(work, "go"), "")
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			if got := outputOf(t, b, busy); !strings.Contains(got, "worked cheque") {
				t.Errorf("the run is %s", got)
			}
		})
	}
}

// A run that works in another process is stopped and ended; the process lives.
func TestCancelRunElsewhere(t *testing.T) {
	a, b, work := shop(t)
	id, done := driveBusy(t, a, work)
	if _, err := RecordChange(t.Context(), b, RunChange{ID: id, Cancel: true}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; !errors.Is(err, ErrStoppedElsewhere) {
		t.Errorf("the drive ends with %v", err)
	}
	if got := outputOf(t, b, id); !strings.HasPrefix(got, "abandoned") {
		t.Errorf("the run is %s", got)
	}
}
