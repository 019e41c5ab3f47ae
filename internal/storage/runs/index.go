package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/foreign"
)

// A runLine is what lists show of the newest run of a thread: what the index of a store keeps, and what adds records to
// it.
type runLine struct {
	history.Line
	Prompt string // its beginning
	Cut    bool   // there is more of it
	Calls  Calls  // of models
	Title  string // of a session: the beginning of its first prompt
	Output string // the beginning of what the run has returned; "": nothing, or it is not known
	Via    string // as in Record
	By     string

	more bool // it comes from an index that has not all of its questions
}

// maxLinePrompt is the number of bytes of a prompt that a line has, and maxLineText that of other texts.
const (
	maxLinePrompt = 500
	maxLineText   = 200
)

// The statuses of lines of threads that are no runs: of a mark that says where a run came from, about which no one has
// decided, and of any other.
const (
	undecidedMark = "undecided"
	otherThread   = "other"
)

// newOtherLine returns the line of a thread that is no run, after some records.
func newOtherLine(thread string, recs []journal.Record) *journal.Line {
	l := &journal.Line{Thread: thread, Order: thread, Status: otherThread}
	if foreign.IsThread(thread) && foreign.IsUndecided(recs) {
		l.Status = undecidedMark
	}
	return l
}

// addRecord adds the next record of the thread.
func (l *runLine) addRecord(r *journal.Record) error {
	if r.Kind == journal.KindStart {
		l.Calls = Calls{}
	}
	l.Meta = nil
	if err := l.Line.Add(r); err != nil {
		return err
	}
	if rec, err := DecodeRecord(l.Meta); err == nil {
		l.addStart(rec)
	} else if r.Kind == journal.KindStart {
		l.addStart(&Record{})
	}
	if err := l.addOutput(r); err != nil {
		return err
	}
	if r.Kind != journal.KindEffect {
		return nil
	}
	e, err := history.DecodeEntry(*r)
	if err != nil || !flow.IsReply(e.ID) {
		return err
	}
	reply, err := flow.ReadReply(r.Data)
	if err != nil {
		return err
	}
	l.Calls.addRecorded(&reply, &e)
	return nil
}

// addStart adds what the record of a start says.
func (l *runLine) addStart(rec *Record) {
	l.Prompt = cutText(rec.Prompt, maxLinePrompt)
	l.Cut = len(l.Prompt) < len(rec.Prompt)
	l.Via = cutText(rec.Via, maxLineText)
	l.By = cutText(rec.By, maxLineText)
	if _, _, kept := SessionOf(l.Thread); kept && l.Title == "" {
		l.Title = cutText(strings.TrimSpace(rec.Prompt), maxLineText)
	}
}

// addOutput sets what the run has returned, as it is after a record.
func (l *runLine) addOutput(r *journal.Record) error {
	if l.Status != graph.Done {
		l.Output = ""
	}
	if r.Kind != journal.KindEnd || l.Status != graph.Done {
		return nil
	}
	value, err := history.DecodeResult(*r)
	if err != nil {
		return err
	}
	l.Output = cutText(strings.TrimSpace(flow.OutcomeOf(graph.Result{Value: value}).Output), maxLineText)
	return nil
}

// forgetAdded empties what an earlier version did not keep in lines, where another line of the run has nothing either.
func (l *runLine) forgetAdded(other *runLine) {
	for _, texts := range [][2]*string{{&l.Title, &other.Title}, {&l.Output, &other.Output}, {&l.Via, &other.Via}, {&l.By, &other.By}} {
		if *texts[1] == "" {
			*texts[0] = ""
		}
	}
}

// cutText returns the beginning of a text, of at most n bytes and of whole characters.
func cutText(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// storedLine is what the index keeps of a runLine, as JSON.
type storedLine struct {
	Run       string         `json:"run,omitempty"` // of a session
	Graph     string         `json:"graph,omitempty"`
	Started   int64          `json:"started"` // Unix microseconds
	Updated   int64          `json:"updated"`
	Questions [][2]string    `json:"questions,omitempty"` // id and prompt; those of Asked if Stopped
	Stopped   bool           `json:"stopped,omitempty"`
	Asked     []storedAsked  `json:"asked,omitempty"`
	More      bool           `json:"more,omitempty"` // were asked
	Due       int64          `json:"due,omitempty"`  // Unix microseconds
	Reason    string         `json:"reason,omitempty"`
	Head      int64          `json:"head"`
	From      *journal.Point `json:"from,omitempty"`
	Prompt    string         `json:"prompt,omitempty"`
	Cut       bool           `json:"cut,omitempty"`
	Active    time.Duration  `json:"active,omitempty"`
	Driving   bool           `json:"driving,omitempty"`
	Calls     *Calls         `json:"calls,omitempty"`
	Title     string         `json:"title,omitempty"`
	Output    string         `json:"output,omitempty"`
	Via       string         `json:"via,omitempty"`
	By        string         `json:"by,omitempty"`
}

// statusesByName are the statuses that the engine records.
var statusesByName = func() map[string]graph.Status {
	all := map[string]graph.Status{}
	for s := graph.Running; s <= graph.Crashed; s++ {
		all[s.String()] = s
	}
	return all
}()

// encodeLine returns the line as the index keeps it.
func (l *runLine) encodeLine() *journal.Line {
	d := storedLine{
		Graph:   l.Graph,
		Started: l.Started.UnixMicro(),
		Updated: l.Last,
		Reason:  l.Reason,
		Head:    l.Head,
		Prompt:  l.Prompt,
		Cut:     l.Cut,
		Active:  l.Active,
		Driving: l.Driving,
		Title:   l.Title,
		Output:  l.Output,
		Via:     l.Via,
		By:      l.By,
	}
	if l.Run != l.Thread {
		d.Run = l.Run
	}
	for i := range l.Asked[:min(len(l.Asked), maxLineAsked)] {
		d.Asked = append(d.Asked, newStoredAsked(&l.Asked[i]))
	}
	d.More = l.more || len(l.Asked) > maxLineAsked
	d.Stopped = len(l.Questions) > 0 && slices.EqualFunc(l.Questions, d.Asked, func(q graph.Question, a storedAsked) bool {
		return q.ID == a.ID && q.Prompt == a.Prompt
	})
	if !d.Stopped {
		for _, q := range l.Questions {
			d.Questions = append(d.Questions, [2]string{q.ID, q.Prompt})
		}
	}
	if !l.Due.IsZero() {
		d.Due = l.Due.UnixMicro()
	}
	if l.From.Thread != "" {
		d.From = &l.From
	}
	if l.Calls.Count > 0 {
		d.Calls = &l.Calls
	}
	details, err := json.Marshal(d)
	if err != nil {
		return nil
	}
	return &journal.Line{
		Thread:  l.Thread,
		Order:   RunOf(l.Thread, l.Run),
		Status:  l.Status.String(),
		Label:   l.Label,
		Wait:    l.waitPlace(),
		Parent:  l.From.Thread,
		Details: details,
	}
}

// decodeLine reads a line of the index; ok is false if it does not say what there is.
func decodeLine(from *journal.Line) (l *runLine, ok bool) {
	var d storedLine
	if from.Status == "" || json.Unmarshal(from.Details, &d) != nil {
		return nil, false
	}
	l = &runLine{Prompt: d.Prompt, Cut: d.Cut, Title: d.Title, Output: d.Output, Via: d.Via, By: d.By, more: d.More}
	l.RunInfo = history.RunInfo{
		Thread:  from.Thread,
		Run:     d.Run,
		Label:   from.Label,
		Graph:   d.Graph,
		Started: time.UnixMicro(d.Started),
		Updated: time.UnixMicro(d.Updated),
		Reason:  d.Reason,
		Head:    d.Head,
	}
	if l.Run == "" {
		l.Run = l.Thread
	}
	if l.Status, ok = statusesByName[from.Status]; !ok {
		return nil, false
	}
	for _, q := range d.Questions {
		l.Questions = append(l.Questions, graph.Question{ID: q[0], Prompt: q[1]})
	}
	for i := range d.Asked {
		a := d.Asked[i].decode()
		l.Asked = append(l.Asked, a)
		if d.Stopped {
			l.Questions = append(l.Questions, graph.Question{ID: a.Question.ID, Prompt: a.Question.Prompt})
		}
	}
	if d.Due != 0 {
		l.Due = time.UnixMicro(d.Due).UTC()
	}
	if d.From != nil {
		l.From = *d.From
	}
	if d.Calls != nil {
		l.Calls = *d.Calls
	}
	l.Active = d.Active
	l.Driving = d.Driving
	l.Last = d.Updated
	return l, true
}

// A lineKeeper writes the line of each thread to which a process appends. It is safe for concurrent use.
type lineKeeper struct {
	store journal.Store
	index journal.Index

	mu    sync.Mutex
	lines map[string]*runLine // as they are after the last append of this process
}

// maxKeptLines is how many lines a keeper remembers; it reads others again.
const maxKeptLines = 4096

// prepareLine returns the context with the line that a thread has after some records, if they change what a list shows,
// and the line itself for [lineKeeper.noteLine]. Without one, as for a thread whose records cannot be read, the index
// says only that the thread is there.
func (k *lineKeeper) prepareLine(ctx context.Context, thread string, after int64, recs []journal.Record) (context.Context, *runLine) {
	if !isRunThread(thread) {
		return journal.WithLine(ctx, newOtherLine(thread, recs)), nil
	}
	l, err := k.findLine(ctx, thread, after)
	if err != nil {
		return ctx, nil
	}
	calls := l.Calls.Count
	asked := l.Asked
	for i := range recs {
		r := recs[i]
		r.Seq = after + int64(i) + 1
		if err := l.addRecord(&r); err != nil {
			return ctx, nil
		}
	}
	if l.Calls.Count == calls && isAskedSame(asked, l.Asked) && journal.LineOf(ctx, thread, after, recs) == nil {
		return ctx, l
	}
	if line := l.encodeLine(); line != nil {
		ctx = journal.WithLine(ctx, line)
	}
	return ctx, l
}

// noteLine remembers the line of a thread after an append, or forgets it; nil: the append has failed, or the line is
// not known.
func (k *lineKeeper) noteLine(thread string, l *runLine) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if l == nil || !l.Driving {
		delete(k.lines, thread)
		return
	}
	if len(k.lines) >= maxKeptLines {
		clear(k.lines)
	}
	k.lines[thread] = l
}

// findLine returns the line of a thread as it is after a record, for the caller to change.
func (k *lineKeeper) findLine(ctx context.Context, thread string, after int64) (*runLine, error) {
	k.mu.Lock()
	kept := k.lines[thread]
	k.mu.Unlock()
	if kept != nil && kept.Head == after {
		return kept.copyLine(), nil
	}
	if after <= 0 {
		return newRunLine(thread), nil
	}
	l := newRunLine(thread)
	stored, ok, err := k.index.ReadLine(ctx, thread)
	if err != nil {
		return nil, err
	}
	if ok {
		if d, known := decodeLine(&stored); known && d.Head <= after && !d.more {
			l = d
		}
	}
	return l, l.catchUp(ctx, k.store, after)
}

func newRunLine(thread string) *runLine {
	l := &runLine{}
	l.Thread = thread
	return l
}

// catchUp adds the records of the thread that the line does not have, up to one (0: all).
func (l *runLine) catchUp(ctx context.Context, st journal.Store, upTo int64) error {
	if upTo > 0 && l.Head >= upTo {
		return nil
	}
	for r, err := range journal.Records(ctx, st, l.Thread, journal.Range{After: l.Head, UpTo: upTo}) {
		if err == nil {
			if err = l.addRecord(&r); err != nil && !IsDamage(err) {
				err = &journal.DamagedError{Thread: l.Thread, Seq: r.Seq, Kind: r.Kind, Err: err}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyLine returns a line that can be changed.
func (l *runLine) copyLine() *runLine {
	c := *l
	c.Calls.Models = slices.Clone(l.Calls.Models)
	c.Calls.Flaws = slices.Clone(l.Calls.Flaws)
	return &c
}

// recordedStatuses returns the statuses of lines among which the runs of a status are; nil: all.
func recordedStatuses(status string) []string {
	switch status {
	case "":
		return nil
	case Running:
		return []string{Crashed}
	case Queued, GivenUp, Damaged:
		return []string{}
	}
	return []string{status}
}

// Reindex writes the lines of all threads of a store whose lines say nothing, as those of a store that an earlier
// version has written, or that records were copied into. noted is called now and then with the number of those that are
// left. A thread whose journal cannot be read keeps its line. It does nothing if the store is no index.
func Reindex(ctx context.Context, st journal.Store, noted func(left int)) error {
	index, ok := st.(journal.Index)
	if !ok {
		return nil
	}
	r := journal.LineRange{Statuses: []string{}, Limit: firstLines}
	for {
		list, err := index.ListLines(ctx, r)
		if err != nil {
			return explainStoreError(ctx, err)
		}
		for i := range list {
			if _, err := fillLine(ctx, st, index, list[i].Thread); err != nil {
				return err
			}
		}
		if len(list) < r.Limit {
			return nil
		}
		r.Below = list[len(list)-1].Order
		r.BelowThread = list[len(list)-1].Thread
		r.Limit = maxLines
		count, err := index.CountLines(ctx)
		if err != nil {
			return explainStoreError(ctx, err)
		}
		noted(count[""])
	}
}

// Reindex is the function Reindex for the store of the archive, if it exists.
func (a *Archive) Reindex(ctx context.Context, noted func(left int)) error {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return err
	}
	return Reindex(ctx, st.inside(), noted)
}

// fillLine writes the line of a thread whose line says nothing, and returns it; nil: its journal cannot be read, or it
// is no run.
func fillLine(ctx context.Context, st journal.Store, index journal.Index, thread string) (*runLine, error) {
	if !isRunThread(thread) {
		var newest []journal.Record
		for r, err := range st.Read(ctx, thread, journal.Range{Newest: true, Limit: 1}) {
			if err != nil {
				return nil, explainStoreError(ctx, err)
			}
			newest = append(newest, r)
		}
		return nil, explainStoreError(ctx, index.FillLine(ctx, *newOtherLine(thread, newest)))
	}
	l := newRunLine(thread)
	err := l.catchUp(ctx, st, 0)
	if IsDamage(err) || err == nil && l.Head == 0 {
		return nil, nil
	}
	line := l.encodeLine()
	if err != nil || line == nil {
		return nil, explainStoreError(ctx, err)
	}
	return l, explainStoreError(ctx, index.FillLine(ctx, *line))
}

// CheckLine returns what is wrong with the line of a thread, in words: that it is not what its records say; "":
// nothing, or there is none. Of a thread whose first records were removed, it does not know it. The error is that of
// the store.
func CheckLine(ctx context.Context, st journal.Store, thread string) (fault string, err error) {
	index, ok := st.(journal.Index)
	if !ok || !isRunThread(thread) {
		return "", nil
	}
	line, ok, err := index.ReadLine(ctx, thread)
	if err != nil || !ok || line.Status == "" {
		return "", explainStoreError(ctx, err)
	}
	l, known := decodeLine(&line)
	if !known {
		return "the line of lists cannot be read", nil
	}
	whole := newRunLine(thread)
	for r, err := range journal.Records(ctx, st, thread, journal.Range{UpTo: l.Head}) {
		if err == nil && whole.Head == 0 && r.Seq > 1 {
			return "", nil
		}
		if err == nil {
			err = whole.addRecord(&r)
		}
		if IsDamage(err) {
			return "", nil
		}
		if err != nil {
			return "", explainStoreError(ctx, err)
		}
	}
	whole.forgetAdded(l)
	whole.nameAsked()
	l.nameAsked()
	want := whole.encodeLine()
	got := l.encodeLine() // as this version writes it
	line.Wait = min(line.Wait, 1)
	if whole.Head == 0 || want == nil || got == nil {
		return "", nil // it was deleted meanwhile
	}
	if want.Order != line.Order || want.Status != line.Status || want.Label != line.Label || want.Parent != line.Parent ||
		min(want.Wait, 1) != line.Wait || !bytes.Equal(want.Details, got.Details) {
		return fmt.Sprintf("lists show %s %s, and its records say %s %s: copy the store with raddle store copy, whose copy has a new index", line.Status, line.Details, want.Status, want.Details), nil
	}
	return "", nil
}

// CountRuns returns the number of runs by status. If the store is an index, its cost grows only with the number of runs
// that are driven or are to be driven. A session counts as one run for each of its branches then.
func (a *Archive) CountRuns(ctx context.Context) (map[string]int, error) {
	count := map[string]int{}
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return count, err
	}
	index, ok := st.inside().(journal.Index)
	if ok {
		if count, err = index.CountLines(ctx); err != nil {
			return nil, explainStoreError(ctx, err)
		}
	}
	if !ok || count[""] > 0 {
		count = map[string]int{}
		for i, err := range a.EachRun(ctx, RunRange{}) {
			if err != nil {
				return nil, err
			}
			count[i.Status]++
		}
		return count, nil
	}
	delete(count, otherThread)
	delete(count, undecidedMark)
	return count, st.countJobs(ctx, count, index)
}

// CountAllRuns returns the number of runs of all statuses.
func (a *Archive) CountAllRuns(ctx context.Context) (n int, err error) {
	count, err := a.CountRuns(ctx)
	for _, of := range count {
		n += of
	}
	return n, err
}

// listFewLines returns all lines with a status, of which there are few, and those that say nothing. It asks for pages:
// without a limit, a store may read all its lines to find them.
func listFewLines(ctx context.Context, index journal.Index, status string) (list []journal.Line, err error) {
	for r := (journal.LineRange{Statuses: []string{status}, Limit: firstLines}); ; r.Limit = maxLines {
		page, err := index.ListLines(ctx, r)
		if err != nil {
			return nil, explainStoreError(ctx, err)
		}
		list = append(list, page...)
		if len(page) < r.Limit {
			return list, nil
		}
		r.Below = page[len(page)-1].Order
		r.BelowThread = page[len(page)-1].Thread
	}
}

// countJobs corrects the number of runs by their recorded status: that of runs whose last drive has not recorded its
// end, and of those that servers are to continue, says their state of now.
func (s *Store) countJobs(ctx context.Context, count map[string]int, index journal.Index) error {
	move := func(from, to string, n int) {
		if count[from] -= n; count[from] <= 0 {
			delete(count, from)
		}
		if n > 0 {
			count[to] += n
		}
	}
	list, err := listFewLines(ctx, index, Crashed)
	if err != nil {
		return err
	}
	jobs := &jobSet{store: s}
	if err := jobs.readJobs(ctx, list); err != nil {
		return err
	}
	for i := range list {
		l, known := decodeLine(&list[i])
		if !known {
			continue
		}
		l.ApplyLease(list[i].Lease)
		info, err := s.describeListed(ctx, l.RunInfo, jobs)
		if err != nil {
			return err
		}
		move(list[i].Status, info.Status, 1)
	}
	q := QueueOf(s)
	if q == nil {
		return nil
	}
	measured, err := q.MeasureJobs(ctx)
	if err != nil {
		return explainStoreError(ctx, err)
	}
	for _, status := range []string{graph.Waiting.String(), graph.Paused.String(), graph.Canceled.String()} {
		n := measured.ByStatus[status]
		queued := n.Due + n.Held
		if status != graph.Waiting.String() { // those that wait for a time are not queued
			queued += n.Later
		}
		move(status, Queued, queued)
		move(status, GivenUp, n.GivenUp)
	}
	return nil
}
