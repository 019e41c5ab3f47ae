package server

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/runs"
)

// The agents of the tests.
const (
	askGraph = `
name: ask
start: first
nodes:
  first: {type: script, script: first.sh, next: ask}
  ask: {type: input, question: Who?, state_updates: {who: "{{input}}"}, next: last}
  last: {type: script, script: last.sh, next: done}
  done: {type: end, output: "Hello {{who}}"}
`
	waitGraph = `
name: wait
start: work
nodes:
  work: {type: script, script: work.sh, timeout: 60, next: done}
  done: {type: end, output: finished}
`
)

// A world is a home directory with agents, which several processes share.
type world struct {
	t    *testing.T
	home string
	work string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), work: dir}
	agents := filepath.Join(w.home, ".config", "raddle", "agents")
	w.write(filepath.Join(agents, "ask", "graph.yaml"), askGraph)
	for _, name := range []string{"first", "last"} {
		w.write(filepath.Join(agents, "ask", name+".sh"), "echo "+name+" >> "+filepath.Join(dir, "effects")+"\necho '{}'\n")
	}
	w.write(filepath.Join(agents, "wait", "graph.yaml"), waitGraph)
	w.write(filepath.Join(agents, "wait", "work.sh"), "echo started >> "+filepath.Join(dir, "effects")+"\nwhile [ ! -e "+filepath.Join(dir, "go")+" ]; do sleep 0.02; done\necho '{}'\n")
	return w
}

func (w *world) write(path, text string) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		w.t.Fatal(err)
	}
}

// open opens a process in the world.
func (w *world) open() *app.Process {
	w.t.Helper()
	p, err := app.Open(app.Options{Work: w.work, Environ: []string{"HOME=" + w.home, "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = p.Close() })
	return p
}

// serve starts a service in the world, which the end of the test closes.
func (w *world) serve(o Options) *Service {
	w.t.Helper()
	s, err := New(w.open(), o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { w.shut(s) })
	return s
}

func (w *world) shut(s *Service) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Close(ctx); err != nil {
		w.t.Error(err)
	}
}

// letGo lets the runs of the agent wait finish.
func (w *world) letGo() { w.write(filepath.Join(w.work, "go"), "") }

// effects returns what scripts have done.
func (w *world) effects() []string {
	text, _ := os.ReadFile(filepath.Join(w.work, "effects"))
	return strings.Fields(string(text))
}

// awaitEffect waits until scripts have done a number of things.
func (w *world) awaitEffects(n int) {
	w.t.Helper()
	for end := time.Now().Add(30 * time.Second); len(w.effects()) < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("only %d effects", len(w.effects()))
		}
	}
}

func start(t *testing.T, s *Service, agent string) string {
	t.Helper()
	run, err := s.StartRun(t.Context(), StartRequest{Agent: agent, Prompt: "x"})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func wait(t *testing.T, s *Service, run, status string) *RunState {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	st, err := s.WaitRun(ctx, run)
	if err != nil || st.Status != status {
		t.Fatalf("run %s: %+v %v; want %s", run, st, err, status)
	}
	return st
}

// read collects the events of a subscription in the background.
func read(ctx context.Context, t *testing.T, s *Service, run string, o SubscribeOptions) (wait func() ([]Event, error)) {
	t.Helper()
	sub, err := s.Subscribe(ctx, run, o)
	if err != nil {
		t.Fatal(err)
	}
	var events []Event
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ev, err := range sub.Events() {
			if err != nil {
				failed = err
				return
			}
			events = append(events, ev)
		}
	}()
	return func() ([]Event, error) {
		select {
		case <-done:
		case <-time.After(60 * time.Second):
			t.Error("the subscription does not end")
		}
		return events, failed
	}
}

// journaledIDs returns the ids of the events of the journal, and fails for one that is not after the one before.
func journaledIDs(t *testing.T, events []Event) (ids []string) {
	t.Helper()
	var last position
	for _, ev := range events {
		if ev.ID == "" {
			continue
		}
		at, err := parsePosition(ev.ID)
		if err != nil || last.record > 0 && !at.isAfter(last) {
			t.Errorf("event %s follows %s (%v)", ev.ID, last, err)
		}
		last = at
		ids = append(ids, ev.ID)
	}
	return ids
}

// A run that a service starts is answered by another process, and a subscriber of the service sees its end; and the reverse.
func TestAnsweredElsewhere(t *testing.T) {
	w := newWorld(t)
	s, other := w.serve(Options{}), w.open()
	run := start(t, s, "ask")
	end := read(t.Context(), t, s, run, SubscribeOptions{})
	if st := wait(t, s, run, "waiting"); len(st.Questions) != 1 || st.Questions[0].Prompt != "Who?" {
		t.Fatalf("questions: %+v", st.Questions)
	}
	resumed, err := other.ResumeRun(t.Context(), run, app.ResumeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(context.Context, []graph.Question) ([]graph.Answer, bool, error) {
		return []graph.Answer{{Value: "Ada"}}, false, nil
	}
	if _, err := resumed.Drive(t.Context(), app.Driver{Ask: ask}); err != nil {
		t.Fatal(err)
	}
	resumed.Close()
	events, err := end()
	last := events[len(events)-1]
	if ended, ok := last.Body.(graph.RunEnded); err != nil || !ok || ended.Result.Status != graph.Done {
		t.Errorf("the last event is %s (%v)", last.Line, err)
	}
	journaledIDs(t, events)
	if st := wait(t, s, run, "done"); st.Output != "Hello Ada" || !st.Final {
		t.Errorf("%+v", st)
	}

	started, err := other.StartRun(app.Request{Agent: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := started.Drive(t.Context(), app.Driver{}); err != nil {
		t.Fatal(err)
	}
	started.Close()
	if given, err := s.AnswerRun(t.Context(), AnswerRequest{Run: started.ID, Answers: []graph.Answer{{ID: "ask", Value: "Eve"}}}); err != nil || len(given.Open) != 0 || given.At.At == 0 {
		t.Fatalf("%+v %v", given, err)
	}
	if st := wait(t, s, started.ID, "done"); st.Output != "Hello Eve" {
		t.Errorf("%+v", st)
	}
	if got := strings.Join(w.effects(), " "); got != "first last first last" {
		t.Errorf("the scripts did: %s", got)
	}
}

// A subscriber that leaves and comes back at any event sees every event of the journal once, in order.
func TestSubscribersComeBack(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "ask")
	whole := read(t.Context(), t, s, run, SubscribeOptions{})
	random := rand.New(rand.NewPCG(1, 2))
	var cutters sync.WaitGroup
	seen := make([][]Event, 8)
	for i := range seen {
		cuts := random.Perm(12)
		cutters.Go(func() {
			after := ""
			for n := 0; ; n++ {
				sub, err := s.Subscribe(t.Context(), run, SubscribeOptions{After: after})
				if err != nil {
					t.Error(err)
					return
				}
				limit, left := 1<<30, false
				if n < len(cuts) {
					limit = cuts[n]%4 + 1
				}
				for ev, err := range sub.Events() {
					if err != nil {
						t.Error(err)
						return
					}
					if ev.ID == "" {
						continue
					}
					after = ev.ID
					seen[i] = append(seen[i], ev)
					if limit--; limit == 0 {
						left = true
						break
					}
				}
				if !left {
					return
				}
			}
		})
	}
	wait(t, s, run, "waiting")
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "Ada"}}}); err != nil {
		t.Fatal(err)
	}
	cutters.Wait()
	events, err := whole()
	if err != nil {
		t.Fatal(err)
	}
	want := journaledIDs(t, events)
	for i := range seen {
		if got := journaledIDs(t, seen[i]); !slices.Equal(got, want) {
			t.Errorf("subscriber %d saw\n%v, want\n%v", i, got, want)
		}
	}
	again, err := read(t.Context(), t, s, run, SubscribeOptions{})()
	if got := journaledIDs(t, again); err != nil || !slices.Equal(got, want) {
		t.Errorf("after the end: %v %v, want %v", got, err, want)
	}
}

// More runs than places wait in order, with their start recorded, and a service that ends lets the next one continue all of them.
func TestQueueOutlivesItsService(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{MaxRuns: 2})
	var list []string
	for range 5 {
		list = append(list, start(t, s, "wait"))
	}
	w.awaitEffects(2)
	if driven, queued := s.CountDrives(); driven != 2 || queued != 3 {
		t.Fatalf("%d runs are driven, %d wait", driven, queued)
	}
	if st, err := s.ReadState(t.Context(), list[4]); err != nil || st.Status != runs.Queued {
		t.Errorf("%+v %v", st, err)
	}
	if got := len(w.effects()); got != 2 {
		t.Errorf("%d scripts have started", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // no time of grace: the scripts are killed
	if err := s.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := s.StartRun(t.Context(), StartRequest{Agent: "ask"}); !errors.Is(err, errDraining) {
		t.Errorf("a run was started: %v", err)
	}
	w.letGo()
	next := w.serve(Options{MaxRuns: 2, Recover: true})
	for _, run := range list {
		if st := wait(t, next, run, "done"); st.Output != "finished" {
			t.Errorf("%+v", st)
		}
	}
	if left, err := next.files.listMarks(); err != nil || len(left) > 0 {
		t.Errorf("marks of %v remain (%v)", left, err)
	}
}

// The same idempotency key gives the same run, also after the service was started again; for another request it is refused.
func TestIdempotencyKeys(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	request := StartRequest{Agent: "ask", Prompt: "x", Key: "k1"}
	var ids [8]string
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], _ = s.StartRun(t.Context(), request) })
	}
	all.Wait()
	w.shut(s)
	next := w.serve(Options{})
	last, err := next.StartRun(t.Context(), request)
	if err != nil || len(slices.Compact(append(ids[:], last))) != 1 {
		t.Errorf("the key has started %v and %s (%v)", ids, last, err)
	}
	request.Prompt = "y"
	if _, err := next.StartRun(t.Context(), request); !errors.As(err, new(*KeyReusedError)) {
		t.Errorf("another request: %v", err)
	}
}

// A cancel runs the node that the graph has for its end, in the service that was asked.
func TestCancelRunsFinally(t *testing.T) {
	w := newWorld(t)
	dir := filepath.Join(w.home, ".config", "raddle", "agents", "order")
	w.write(filepath.Join(dir, "graph.yaml"), `
name: order
start: ask
finally: undo
nodes:
  ask: {type: input, question: "How many?", next: done}
  undo: {type: script, script: undo.sh}
  done: {type: end, output: ordered}
`)
	w.write(filepath.Join(dir, "undo.sh"), `echo '{"undone": "yes"}'`)
	s := w.serve(Options{})
	run := start(t, s, "order")
	wait(t, s, run, "waiting")
	if err := s.CancelRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if st := wait(t, s, run, "abandoned"); !st.Final {
		t.Errorf("%+v", st)
	}
	v, err := s.process.Runs.ReadView(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	if state := string(flow.StoredJSON(v.Snapshot.Values)); !strings.Contains(state, `"undone":"yes"`) {
		t.Errorf("the state is %s", state)
	}
}

// Cancelling ends a run that works, at once and permanently; pausing and resuming do not lose it.
func TestCancelAndPause(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "wait")
	w.awaitEffects(1)
	if err := s.CancelRun(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	if st := wait(t, s, run, "abandoned"); !st.Final {
		t.Errorf("%+v", st)
	}
	if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{{Value: "x"}}}); err == nil {
		t.Error("a cancelled run takes an answer")
	}
	paused := start(t, s, "wait")
	w.awaitEffects(2)
	if err := s.PauseRun(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	w.letGo()
	wait(t, s, paused, "paused")
	if err := s.ResumeRun(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	wait(t, s, paused, "done")
	if got := len(w.effects()); got != 2 {
		t.Errorf("%d scripts have started", got)
	}
}

// Wrong answers record nothing, and paths are refused.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	for _, agent := range []string{"nothing", "", "./ask", "../ask", "/etc", "ask/graph.yaml"} {
		if run, err := s.StartRun(t.Context(), StartRequest{Agent: agent}); !errors.As(err, new(*failure.Error)) {
			t.Errorf("agent %q: %s %v", agent, run, err)
		}
	}
	run := start(t, s, "ask")
	wait(t, s, run, "waiting")
	for _, answer := range []graph.Answer{{ID: "other", Value: "x"}, {ID: "ask", Value: 7}} {
		if _, err := s.AnswerRun(t.Context(), AnswerRequest{Run: run, Answers: []graph.Answer{answer}}); err == nil {
			t.Errorf("%+v was taken", answer)
		}
	}
	if st := wait(t, s, run, "waiting"); len(st.Questions) != 1 {
		t.Errorf("%+v", st)
	}
	if _, err := s.Subscribe(t.Context(), "nothing", SubscribeOptions{}); err == nil {
		t.Error("an unknown run can be followed")
	}
	if _, err := s.Subscribe(t.Context(), run, SubscribeOptions{After: "x.y"}); !errors.As(err, new(*PositionError)) {
		t.Errorf("a wrong position: %v", err)
	}
}

// A subscription that begins when the service has ended says so, after what is recorded.
func TestSubscribeAfterTheEnd(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "ask")
	wait(t, s, run, "waiting")
	w.shut(s)
	events, err := read(t.Context(), t, s, run, SubscribeOptions{})()
	if !errors.Is(err, errDraining) || len(events) == 0 {
		t.Errorf("%d events, %v", len(events), err)
	}
}

// A subscriber that never reads is dropped with a reason, and the run and other subscribers continue.
func TestSlowSubscriber(t *testing.T) {
	w := newWorld(t)
	s := w.serve(Options{})
	run := start(t, s, "ask")
	wait(t, s, run, "waiting")
	sub, err := s.Subscribe(t.Context(), run, SubscribeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := s.feeds.acquire(s, run)
	defer s.feeds.release(f)
	n := 0
	for _, err := range sub.Events() {
		if err != nil {
			if !errors.Is(err, ErrSlow) {
				t.Error(err)
			}
			break
		}
		if n++; n == 1 {
			for i := range 200 { // the reader is here, and does not read
				f.handleEvent(graph.Event{Body: graph.ValueEmitted{Value: fmt.Sprint(i, strings.Repeat("x", 64<<10))}})
			}
		}
	}
	if n == 0 || n > 100 {
		t.Errorf("%d events were read", n)
	}
}
