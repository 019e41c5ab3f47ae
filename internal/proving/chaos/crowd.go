//go:build unix

package chaos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/runs"
)

// Times of starting and watching.
const (
	startEvery = 250 * time.Millisecond
	watchEvery = 300 * time.Millisecond
	retryEvery = 500 * time.Millisecond
	perServer  = 4                       // runs that work at the same time
	stuckAfter = 2*lease + 2*time.Second // since the last fault and the newest record
)

// A crowd are the runs that the command has started, and what it knows of each. Its methods are called by one
// goroutine at a time, unless they say otherwise.
type crowd struct {
	stage   *stage
	client  *client
	name    string // of this chaos: the beginning of all users
	most    int    // how many runs are started; 0: no limit
	body    startBody
	mu      sync.Mutex // guards the fields below, and those of each member
	members []*member
	next    int // the server that is asked next
	quit    context.CancelFunc
	ctx     context.Context // of requests that outlive a method
	pending sync.WaitGroup  // requests
}

// A member is one run.
type member struct {
	user   string
	run    string // "": no server has confirmed it
	gaveUp bool   // no server will: the start was refused, or time is over
	answer func(graph.Question) (any, bool)

	asking  bool // an answer is on its way
	answers int  // accepted ones
	seen    []Seen
	moved   time.Time // when the newest record was seen first
	status  string
	reason  string
	ended   bool
	waits   bool
	parked  bool // it waits, and no answer is given
}

func newCrowd(s *stage, c *Command) *crowd {
	w := &crowd{stage: s, client: newClient(s.token), name: newName(), most: c.Runs}
	w.ctx, w.quit = context.WithCancel(context.Background())
	w.body = startBody{Agent: s.agent.Name, Prompt: c.Prompt}
	if s.agent.File == nil {
		w.body.Session = "temp"
	}
	if one := s.rehearsal.Case; one != nil {
		if w.body.Prompt == "" {
			w.body.Prompt = one.Prompt
		}
		w.body.Variables = map[string]string{}
		for _, v := range one.Variables {
			w.body.Variables[v.Key] = v.Value
		}
	}
	return w
}

// close ends the requests that are on their way.
func (w *crowd) close() {
	w.quit()
	w.pending.Wait()
}

// chooseServer returns a server that listens, each in turn; nil: none does.
func (w *crowd) chooseServer() *child {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range w.stage.servers {
		s := w.stage.servers[w.next%len(w.stage.servers)]
		w.next++
		if s.listens() != "" {
			return s
		}
	}
	return nil
}

// addMember starts a run at a server, and sends the request again until it is answered.
func (w *crowd) addMember(s *child) *member {
	w.mu.Lock()
	m := &member{user: fmt.Sprintf("%s-%d", w.name, len(w.members)+1), answer: w.stage.rehearsal.NewAnswers(), moved: time.Now()}
	w.members = append(w.members, m)
	w.mu.Unlock()
	w.pending.Go(func() {
		for {
			run, err := w.client.startRun(w.ctx, s.listens(), m.user, w.body)
			w.mu.Lock()
			var refused *refusedError
			switch {
			case err == nil:
				m.run = run
				m.moved = time.Now()
			case errors.As(err, &refused) || w.ctx.Err() != nil:
				m.gaveUp = true
				m.reason = err.Error()
			}
			over := m.run != "" || m.gaveUp
			w.mu.Unlock()
			if over || testrun.Sleep(w.ctx, retryEvery) != nil {
				return
			}
		}
	})
	return m
}

// startUntil starts runs until a time, as long as few of them work.
func (w *crowd) startUntil(ctx context.Context, end time.Time) {
	for time.Now().Before(end) && testrun.Sleep(ctx, startEvery) == nil {
		if w.most > 0 && w.countMembers() >= w.most {
			return
		}
		if s := w.chooseServer(); s != nil && w.countWorking() < perServer*len(w.stage.servers) {
			w.addMember(s)
		}
	}
}

func (w *crowd) countMembers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.members)
}

// countWorking returns how many runs have neither ended nor wait for something that does not come.
func (w *crowd) countWorking() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		if !m.isOver() {
			n++
		}
	}
	return n
}

// isOver reports whether nothing is expected of a run any more. The crowd is locked.
func (m *member) isOver() bool { return m.ended || m.parked || m.gaveUp }

// watchUntil looks at the runs and answers them until a time.
func (w *crowd) watchUntil(ctx context.Context, end time.Time) {
	for time.Now().Before(end) && testrun.Sleep(ctx, watchEvery) == nil {
		_ = w.look(ctx) // the store may be away for a moment; settle says if it stays away
	}
}

// listWorking returns the members that are not over and have a run.
func (w *crowd) listWorking() (list []*member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		if !m.isOver() && m.run != "" {
			list = append(list, m)
		}
	}
	return list
}

// look reads what is new of each run that works, and answers its questions.
func (w *crowd) look(ctx context.Context) error {
	st, err := w.stage.openStore()
	if err != nil {
		return err
	}
	for _, m := range w.listWorking() {
		if err := w.lookAt(ctx, st, m); err != nil {
			return err
		}
	}
	return nil
}

// lookAt reads what is new of one run. A run that is not there is not new.
func (w *crowd) lookAt(ctx context.Context, st *runs.Store, m *member) error {
	after := int64(0)
	if n := len(m.seen); n > 0 {
		after = m.seen[n-1].Seq
	}
	var fresh []Seen
	for r, err := range journal.Records(ctx, st, m.run, journal.Range{After: after, Heads: true}) {
		if err != nil {
			return err
		}
		fresh = append(fresh, Seen{r.Seq, r.Sum})
	}
	d, err := w.stage.process.Runs.ReadRunDetail(ctx, m.run)
	if unknown := (*runs.UnknownError)(nil); errors.As(err, &unknown) {
		return nil
	}
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.seen = append(m.seen, fresh...); len(fresh) > 0 {
		m.moved = time.Now()
	}
	m.status = d.Status
	m.reason = d.Reason
	m.ended = d.Final || runs.HasFailed(d.Status)
	m.waits = d.Waits()
	if !m.waits || m.asking {
		return nil
	}
	m.parked = true
	for _, q := range d.Snapshot.Questions {
		if value, ok := m.answer(q); ok {
			m.parked = false
			m.asking = true
			w.pending.Go(func() { w.giveAnswer(m, q.ID, value) })
			break // the others are answered when this one is
		}
	}
	return nil
}

// giveAnswer answers a question at any server. It is tried once: the next look asks again if the question is still open.
func (w *crowd) giveAnswer(m *member, question string, value any) {
	err := errors.New("no server listens")
	if s := w.chooseServer(); s != nil {
		err = w.client.answerRun(w.ctx, s.listens(), m.user, m.run, question, value)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	m.asking = false
	if err == nil {
		m.answers++
	}
}

// tryCalmly runs the agent once without a fault.
func (w *crowd) tryCalmly(ctx context.Context) error {
	m := w.addMember(w.stage.servers[0])
	for end := time.Now().Add(calmWait); ; {
		if err := testrun.Sleep(ctx, watchEvery); err != nil {
			return err
		}
		if err := w.look(ctx); err != nil {
			return err
		}
		w.mu.Lock()
		run, status, reason, over := m.run, m.status, m.reason, m.isOver()
		w.mu.Unlock()
		switch {
		case over && (run == "" || runs.HasFailed(status)):
			return refuseFailure(run, reason)
		case over:
			return nil
		case time.Now().After(end):
			return refuseFailure(run, describeNoEnd)
		}
	}
}

// settle lets the runs end. It returns when each is over, or has not moved for long.
func (w *crowd) settle(ctx context.Context) error {
	last := time.Now() // all faults are over
	for {
		if err := testrun.Sleep(ctx, watchEvery); err != nil {
			return err
		}
		if err := w.look(ctx); err != nil {
			return err
		}
		if !w.hopes(last) {
			return nil
		}
	}
}

// hopes reports whether a run is not over that may still move.
func (w *crowd) hopes(last time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.members {
		since := last
		if m.moved.After(last) {
			since = m.moved
		}
		if !m.isOver() && time.Since(since) < stuckAfter {
			return true
		}
	}
	return false
}

// collect gathers the evidence, after all requests have ended.
func (w *crowd) collect(ctx context.Context) (e Evidence, err error) {
	w.close()
	st, err := w.stage.openStore()
	if err != nil {
		return e, err
	}
	byUser := map[string]*member{}
	first := time.Now()
	for _, m := range w.members {
		e.Starts = append(e.Starts, Start{m.user, m.run})
		byUser[m.user] = m
		if len(m.seen) > 0 && m.moved.Before(first) {
			first = m.moved
		}
	}
	most := 2*len(w.members) + 100 // the newest runs of the store; others may have started some of them
	newest, err := w.stage.process.Runs.ListNewest(ctx, "", most)
	if err != nil {
		return e, err
	}
	for i := range newest {
		if newest[i].Agent != w.body.Agent {
			continue
		}
		snap, err := history.Inspect(ctx, st, newest[i].Run, 0)
		if err != nil {
			return e, err
		}
		m := byUser[snap.User]
		if m == nil {
			continue
		}
		h, err := m.describe(ctx, st, &newest[i])
		if err != nil {
			return e, err
		}
		e.Runs = append(e.Runs, h)
		w.stage.named = append(w.stage.named, h.Run)
	}
	e.Effects, err = readEffects(w.stage.dir)
	return e, err
}

// describe returns what the store has of a run at the end. It may be another run than that of the member, if one start
// has made two.
func (m *member) describe(ctx context.Context, st *runs.Store, i *runs.Info) (h History, err error) {
	h = History{Run: i.Run, User: m.user, Status: i.Status, Reason: i.Reason, Sums: map[int64]uint64{}}
	h.Ended = i.Final || runs.HasFailed(i.Status)
	h.Waits = i.Status == graph.Waiting.String()
	if i.Run == m.run {
		h.Seen, h.Answers = m.seen, m.answers
		if h.Waits && !m.parked { // an answer was not taken
			h.Waits = false
		}
	}
	for r, err := range journal.Records(ctx, st, i.Run, journal.Range{}) {
		if err != nil {
			return h, err
		}
		entry, err := history.DecodeEntry(r)
		if err != nil {
			return h, err
		}
		h.Sums[r.Seq] = r.Sum
		h.Entries = append(h.Entries, entry)
	}
	return h, nil
}
