package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/graphtest/disturb"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// The threads of a run that is explored.
const (
	exploredThread = "explored"
	forkedThread   = "forked"
)

// How long an explored run may take, and how many drives.
const (
	exploredTime   = 2 * time.Minute
	exploredDays   = 3 * 24 * time.Hour // in a bubble
	exploredDrives = 500
	pausedFor      = 25 * time.Hour
)

// exploredEnd is how an explored run has ended, for comparisons.
type exploredEnd struct {
	status  graph.Status
	failure string // the text of the error; "": none, or it is not known
	value   any
	state   map[string]any
	asked   map[string]bool // node and prompt of each question: ids depend on the order of parallel questions
	read    bool            // from the journal
	free    bool            // an effect in doubt may have changed the end
	doubts  []string        // effects that were in doubt
	whole   bool            // no drive was cut off
	check   error
	fork    *exploredEnd // nil: the thread was not forked
	isFork  bool
}

// exploredRun is one run of a subject under a schedule.
type exploredRun struct {
	*explorer
	subject Subject
	trial   *disturb.Trial
	store   *journal.Memory
	runner  *graph.Runner // of the process
	names   func() string
	answers []graph.Answer // for the next drive
	rnd     *rand.Rand     // nil: questions are answered together
	asked   map[string]bool
	doubts  []string
	retried map[string]bool // questions about effects in doubt
	left    []chan driveEnd
}

// driveEnd is what a drive has returned.
type driveEnd struct {
	res  graph.Result
	err  error
	kill bool // the process was killed: nothing was returned
	cut  disturb.Kind

	paused bool // by the schedule
}

// runSubject runs the subject from its start to its end.
func (w *exploredRun) runSubject(ctx context.Context) (*exploredEnd, error) {
	limit := exploredDays
	if !w.bubble {
		limit = exploredTime
		w.trial.Outage = time.Second
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errEndless)
	defer cancel()
	w.store, w.names, w.asked, w.retried = journal.NewMemory(), IDs("id"), map[string]bool{}, map[string]bool{}
	if d, ok := w.trial.Schedule.FindKind(disturb.Order); ok && d.At != disturb.Reversed {
		w.rnd = newOrder(d.At)
	}
	if err := w.beginProcess(); err != nil {
		return nil, err
	}
	end, o, err := w.finishThread(ctx, exploredThread)
	if err == nil && w.subject.Check != nil && w.trial.ForkPoint() == 0 {
		end.check = w.subject.Check(o)
	}
	if seq := w.trial.ForkPoint(); err == nil && seq > 0 {
		end.fork, err = w.runFork(ctx, seq)
	}
	w.trial.ReleaseAll()
	for _, ch := range w.left {
		<-ch
	}
	return end, err
}

// newOrder returns the random numbers of an order.
func newOrder(at string) *rand.Rand {
	seed, _ := strconv.ParseUint(at, 10, 64)
	return rand.New(rand.NewPCG(seed, 1))
}

// beginProcess makes the runner of a new process.
func (w *exploredRun) beginProcess() error {
	r, err := w.subject.Runner()
	if err != nil {
		return fmt.Errorf("make the runner: %w", err)
	}
	own := *r
	_, own.Debug = w.trial.Schedule.FindKind(disturb.Poison)
	order, _ := w.trial.Schedule.FindKind(disturb.Order)
	own.Executor = &orderedTasks{order: order.At, head: taskHead}
	if w.bubble {
		own.Executor = &orderedTasks{order: order.At, head: taskHeadInBubble}
	}
	if own.IDs == nil {
		own.IDs = w.names
	}
	w.runner = &own
	return nil
}

// runFork forks the thread at a record, and runs the copy to its end.
func (w *exploredRun) runFork(ctx context.Context, seq int64) (*exploredEnd, error) {
	if err := history.Fork(ctx, w.store, exploredThread, seq, forkedThread); err != nil {
		return nil, fmt.Errorf("fork at record %d: %w", seq, err)
	}
	w.asked = map[string]bool{}
	w.answers = nil
	end, _, err := w.finishThread(ctx, forkedThread)
	if err == nil {
		end.isFork = true
	}
	return end, err
}

// finishThread drives a thread until its run is over.
func (w *exploredRun) finishThread(ctx context.Context, thread string) (*exploredEnd, EndOfRun, error) {
	for range exploredDrives {
		end := w.driveOnce(ctx, thread, false)
		for _, q := range end.res.Questions {
			if isAboutDoubt(q) {
				w.retried[q.ID] = true
			} else {
				w.asked[q.Node+": "+q.Prompt] = true
			}
		}
		if ctx.Err() != nil {
			w.trial.AddFault("%v", context.Cause(ctx))
			return w.newEnd(end.res, end.err), EndOfRun{Result: end.res, Failure: end.err, InDoubt: w.doubts}, nil
		}
		if over, err := w.prepareNext(ctx, thread, end); err != nil || over {
			if len(end.res.Hung) > 0 {
				w.trial.AddFault("these nodes do not return: %v", end.res.Hung)
			}
			return w.newEnd(end.res, end.err), EndOfRun{Result: end.res, Failure: end.err, InDoubt: w.doubts}, err
		}
		if !end.kill && end.cut == "" || !w.trial.HasEnded() {
			continue
		}
		res, err := w.readEnd(ctx)
		if err != nil {
			return nil, EndOfRun{}, err
		}
		e := w.newEnd(res, nil)
		e.read = true
		return e, EndOfRun{Result: res, InDoubt: w.doubts}, nil
	}
	w.trial.AddFault("the run is not over after %d drives", exploredDrives)
	return w.newEnd(graph.Result{}, nil), EndOfRun{InDoubt: w.doubts}, nil
}

// prepareNext does what happens between two drives. over reports whether there is no next one.
func (w *exploredRun) prepareNext(ctx context.Context, thread string, end driveEnd) (over bool, err error) {
	if w.answers = nil; thread == exploredThread {
		if err := w.noteDoubts(ctx); err != nil {
			return false, err
		}
	}
	var busy *graph.BusyError
	switch {
	case end.kill:
		return false, w.beginProcess()
	case errors.As(end.err, &busy), end.res.Status == graph.NotStarted && journal.IsUnavailable(end.err):
		time.Sleep(time.Second)
	case end.err != nil && end.cut != "":
	case end.err != nil && journal.IsUnavailable(end.err):
		w.trial.AddFault("the drive has not waited for its store: %v", end.err)
	case end.res.Status == graph.Paused:
		if end.paused && w.bubble {
			time.Sleep(pausedFor)
		}
	case end.res.Status == graph.Waiting && len(end.res.Questions) == 0:
		w.waitUntil(end.res.Due)
	case end.res.Status == graph.Waiting:
		w.answerQuestions(end.res.Questions)
	default:
		return true, nil
	}
	return false, nil
}

// waitUntil waits until a run that only sleeps is due, by the clock of its runner.
func (w *exploredRun) waitUntil(due time.Time) {
	if c := w.runner.Clock; c != nil {
		_ = c.Wait(context.Background(), due.Sub(c.Now())) // the context does not end
		return
	}
	time.Sleep(time.Until(due))
}

// noteDoubts notes which effects are in doubt when no drive works.
func (w *exploredRun) noteDoubts(ctx context.Context) error {
	s, err := history.Inspect(ctx, w.store, exploredThread, 0)
	if errors.Is(err, journal.ErrNoThread) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, in := range s.InDoubt {
		name := in.Path + strings.ReplaceAll(in.ID, "\x00", " ")
		if !slices.Contains(w.doubts, name) {
			w.doubts = append(w.doubts, name)
		}
	}
	return nil
}

// cutsOff reports whether the schedule ends drives in their work.
func (w *exploredRun) cutsOff() bool {
	return slices.ContainsFunc(w.trial.Schedule, func(d disturb.Disturbance) bool {
		switch d.Kind {
		case disturb.Order, disturb.Poison, disturb.Pause, disturb.Fork, disturb.Busy, disturb.Away, disturb.AnswerLost:
			return false
		}
		return true
	})
}

// driveOnce is one drive, which begins the run if it has not started. If another must take over, it is that other one.
func (w *exploredRun) driveOnce(ctx context.Context, thread string, takeover bool) driveEnd {
	d := w.trial.NewDrive(nil)
	own := *w.runner
	var pause <-chan struct{} = d.Paused
	if own.Store = d.WrapStore(w.store); thread != exploredThread {
		own.Store = w.store
		pause = nil
	}
	start := w.trial.IsEmpty()
	ch := make(chan driveEnd, 1)
	in := w.subject.Input
	answers := w.answers
	go func() {
		var e driveEnd
		if ctx := d.WatchEffects(ctx); start {
			in.Thread = thread
			in.Run = "run"
			in.Pause = pause
			e.res, e.err = own.Invoke(ctx, in)
		} else {
			e.res, e.err = own.InvokeResume(ctx, graph.Resume{Thread: thread, Takeover: takeover, Answers: answers, Reply: in.Reply, Pause: pause, Grace: in.Grace})
		}
		ch <- e
	}()
	select {
	case e := <-ch:
		e.cut = d.CutOff()
		select {
		case <-d.Paused:
			e.paused = true
		default:
		}
		return e
	case <-d.Killed:
		w.left = append(w.left, ch)
		return driveEnd{kill: true, cut: d.CutOff()}
	case <-d.Held:
	}
	w.answers = nil
	if err := w.noteDoubts(ctx); err != nil {
		d.ContinueHeld()
		return driveEnd{err: err}
	}
	next := w.driveOnce(ctx, thread, true)
	if next.kill { // its process is that of the first drive too
		w.left = append(w.left, ch)
		return next
	}
	d.ContinueHeld()
	select {
	case first := <-ch:
		switch {
		case first.err != nil:
		case next.cut != "", next.res.Status == graph.NotStarted: // it has not displaced the first
			return first
		default:
			w.trial.AddFault("a drive that was displaced has ended without an error, as %v", first.res.Status)
		}
		return next
	case <-d.Killed:
		w.left = append(w.left, ch)
		return driveEnd{kill: true, cut: d.CutOff()}
	}
}

// answerQuestions gives answers to the next drive: to all that is asked, or with an Order to one of them.
func (w *exploredRun) answerQuestions(open []graph.Question) {
	if w.rnd != nil {
		open = []graph.Question{open[w.rnd.IntN(len(open))]}
	}
	for _, q := range open {
		w.answers = append(w.answers, graph.Answer{ID: q.ID, Value: w.chooseAnswer(q)})
	}
}

// isAboutDoubt reports whether a question is about an effect in doubt.
func isAboutDoubt(q graph.Question) bool {
	return slices.Equal(q.Options, []string{"retry", "skip", "fail"}) && strings.Contains(q.Prompt, "was cut off before")
}

func (w *exploredRun) chooseAnswer(q graph.Question) any {
	switch {
	case isAboutDoubt(q):
		return "retry"
	case w.subject.Answer != nil:
		return w.subject.Answer(q)
	case q.Default != "":
		return q.Default
	case len(q.Options) > 0:
		return q.Options[0]
	}
	switch q.Type {
	case "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{}
	case "object":
		return map[string]any{}
	}
	return "an answer"
}

// readEnd reads how a run has ended whose last drive was cut off after that.
func (w *exploredRun) readEnd(ctx context.Context) (res graph.Result, err error) {
	s, err := history.Inspect(ctx, w.store, exploredThread, 0)
	if err != nil {
		return res, err
	}
	own := *w.runner
	own.Store = w.store
	res = graph.Result{Thread: exploredThread, Run: s.Run, Status: s.Status, Value: s.Result, Head: s.Head}
	res.State, err = own.State(ctx, exploredThread, 0)
	return res, err
}

// newEnd returns what is compared of an end.
func (w *exploredRun) newEnd(res graph.Result, err error) *exploredEnd {
	e := &exploredEnd{status: res.Status, value: res.Value, state: map[string]any{}, asked: w.asked, doubts: w.doubts, whole: !w.cutsOff(), free: len(w.doubts) > len(w.retried)}
	if err != nil {
		e.failure = err.Error()
	}
	for _, k := range res.State.Keys() {
		if !slices.Contains(w.options.Ignore, k) {
			e.state[k], _ = res.State.Value(k)
		}
	}
	return e
}

// compareEnds says how the end b differs from the undisturbed end a.
func (x *explorer) compareEnds(a, b *exploredEnd) (list []string) {
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if b.check != nil {
		add("the check: %v", b.check)
	}
	if b.fork != nil {
		for _, what := range x.compareEnds(a, b.fork) {
			add("the fork: %s", what)
		}
	}
	for _, effect := range b.doubts {
		if b.whole && !slices.Contains(a.doubts, effect) {
			add("the effect %s is in doubt although no drive was cut off", effect)
		}
	}
	if b.free {
		return list
	}
	if a.status != b.status {
		add("the status is %v%s, and undisturbed %v%s", b.status, inBrackets(b.failure), a.status, inBrackets(a.failure))
	} else if a.failure != b.failure && !b.read {
		add("the error is %q, and undisturbed %q", b.failure, a.failure)
	}
	if !reflect.DeepEqual(a.value, b.value) {
		add("the value is %s, and undisturbed %s", showValue(b.value), showValue(a.value))
	}
	all := maps.Clone(a.state)
	maps.Copy(all, b.state)
	for _, k := range slices.Sorted(maps.Keys(all)) {
		was, before := a.state[k]
		is, now := b.state[k]
		if before != now || !reflect.DeepEqual(was, is) {
			add("the key %s is %s, and undisturbed %s", k, showPresent(is, now), showPresent(was, before))
		}
	}
	return append(list, compareQuestions(a, b)...)
}

// compareQuestions says which questions were asked in one of two runs only. An effect in doubt may have added some; a
// fork does not ask again what was answered before it.
func compareQuestions(a, b *exploredEnd) (list []string) {
	for _, q := range slices.Sorted(maps.Keys(a.asked)) {
		if !b.asked[q] && !b.isFork {
			list = append(list, fmt.Sprintf("a question is not asked: %q", q))
		}
	}
	for _, q := range slices.Sorted(maps.Keys(b.asked)) {
		if !a.asked[q] && len(b.doubts) == 0 {
			list = append(list, fmt.Sprintf("a question is asked only when the run is disturbed: %q", q))
		}
	}
	return list
}

func inBrackets(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// showPresent returns a value of a state as text.
func showPresent(v any, present bool) string {
	if !present {
		return "absent"
	}
	return showValue(v)
}

// maxShown is how much is shown of a value.
const maxShown = 300

func showValue(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		b = fmt.Append(nil, v)
	}
	return fmt.Sprintf("%.*s", maxShown, b)
}

// orderedTasks is an Executor that begins the tasks of a step one after the other. A task that waits does not keep the
// next from its begin.
type orderedTasks struct {
	order string // "": as declared
	head  time.Duration
	calls atomic.Int64
}

// How long a task may work before the next one begins. In a bubble it only passes when the task waits; it is longer
// than an outage.
const (
	taskHead         = 20 * time.Millisecond
	taskHeadInBubble = 5 * time.Minute
)

// Execute implements graph.Executor.
func (o *orderedTasks) Execute(n, limit int, task func(int)) {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	switch o.order {
	case "":
	case disturb.Reversed:
		slices.Reverse(places)
	default:
		rnd := newOrder(o.order)
		for range o.calls.Add(1) {
			rnd.Shuffle(n, func(i, j int) { places[i], places[j] = places[j], places[i] })
		}
	}
	ended := make(chan struct{}, n)
	running := 0
	for _, i := range places {
		if limit > 0 && running == limit {
			<-ended
			running--
		}
		running++
		go func() {
			defer func() { ended <- struct{}{} }()
			task(i)
		}()
		head := time.NewTimer(o.head)
		select {
		case <-ended:
			running--
		case <-head.C:
		}
		head.Stop()
	}
	for range running {
		<-ended
	}
}
