package testrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/internal/testcase"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// CrashResult is what happened when the run of a case was killed at each of its crash points and resumed.
type CrashResult struct {
	Case        *testcase.Case
	Points      int
	Differences []Difference
	Reason      string // why the case could not be checked: it fails, or two runs without a crash already differ
}

// Difference is a run that was killed, resumed, and did not end as the run without a crash.
type Difference struct {
	Point   string   `json:"killed"`            // when the run was killed
	What    []string `json:"what"`              // what differs
	Culprit string   `json:"culprit,omitempty"` // the effect that causes it, and what to do; empty: raddle itself is wrong
}

// HasPassed reports whether every run ended as the one without a crash.
func (r *CrashResult) HasPassed() bool { return r.Reason == "" && len(r.Differences) == 0 }

// RunCrashes runs a case once without a crash. Then it runs the case again for each append to the journal, twice: killed before the
// append, so that an effect has happened and its record is missing, and killed after it. Each killed run is resumed until it ends. It must
// have the same end, output, state and files as the run without a crash, and make no effect again whose result was recorded.
func (r *Runner) RunCrashes(ctx context.Context, c *testcase.Case) (*CrashResult, error) {
	out := &CrashResult{Case: c}
	reference, appends, err := r.runKilled(ctx, c, killPoint{})
	if err != nil {
		return nil, err
	}
	again, _, err := r.runKilled(ctx, c, killPoint{})
	switch {
	case err != nil:
		return nil, err
	case len(reference.result.Failures) > 0:
		out.Reason = "the case fails without a crash; run it with: raddle test"
		return out, nil
	case len(reference.compare(again)) > 0:
		out.Reason = "two runs without a crash differ: " + strings.Join(reference.compare(again), "; ")
		return out, nil
	}
	points := make([]killPoint, 0, 2*appends)
	for n := 1; n <= appends; n++ {
		points = append(points, killPoint{n, false}, killPoint{n, true})
	}
	found := make([]*Difference, len(points))
	err = forEach(ctx, len(points), func(i int) error {
		trial, _, err := r.runKilled(ctx, c, points[i])
		if err == nil {
			found[i] = reference.explain(trial)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out.Points = len(points)
	for _, d := range found {
		if d != nil {
			out.Differences = append(out.Differences, *d)
		}
	}
	return out, nil
}

// forEach calls do for 0 to n-1, several at the same time, and returns the first error.
func forEach(ctx context.Context, n int, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					cancel(err)
				}
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	workers.Wait()
	return context.Cause(ctx)
}

// A killPoint is an append to the journal at which a run is killed.
type killPoint struct {
	append int  // from 1; 0: the run is not killed
	saved  bool // the append has been saved
}

// killedRun is a run of a case that was killed once, and resumed.
type killedRun struct {
	result  *Result
	files   map[string]string // in the scratch directory, by path: their content
	kill    *killer
	scratch string // its directory, which has another name in each run

	over bool // it was killed after its end was saved, and not resumed: its result has no state
}

// runKilled runs a case, kills it at a point and resumes it. It returns the number of appends of the first drive.
func (r *Runner) runKilled(ctx context.Context, c *testcase.Case, at killPoint) (*killedRun, int, error) {
	k := &killer{at: at, recorded: map[string]bool{}, made: map[string]*madeEffect{}}
	out := &killedRun{kill: k}
	res, err := r.RunCase(ctx, c, Setup{
		Journal: k.wrapStore,
		Adjust:  k.adjustHost,
		Drive: func(ctx context.Context, t *Trial) (res graph.Result, err error) {
			if res, err = k.drive(ctx, t); k.endDrive() {
				if k.isEmpty() {
					t.RunID = "" // its start was not saved: the caller starts it again
				}
				if out.over = k.hasEnded(); out.over {
					res, err = t.readEnd(ctx)
				} else {
					res, err = k.drive(ctx, t)
				}
			}
			out.scratch = t.Scratch
			out.files, _ = readTree(t.Scratch, agentsDir, "home")
			return res, err
		},
	})
	out.result = res
	return out, k.appends, err
}

// errKilled is the error of everything that a killed drive still tries.
var errKilled = errors.New("the run was killed by the test")

// A killer kills a drive at a point: from then on the drive saves nothing, and its context has ended. It also notes which effects are made.
type killer struct {
	at killPoint

	mu       sync.Mutex
	appends  int
	saved    int // records
	killed   bool
	over     bool // the killed drive has ended
	cancel   context.CancelFunc
	last     []graph.Entry // of the append at which the run was killed
	recorded map[string]bool
	made     map[string]*madeEffect
	repeated []string // effects that were made again although their result was recorded
}

// madeEffect is an effect that was made.
type madeEffect struct {
	name string
	n    int
}

// drive drives the trial until it ends or is killed.
func (k *killer) drive(ctx context.Context, t *Trial) (graph.Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	k.mu.Lock()
	k.cancel = cancel
	k.mu.Unlock()
	return t.Drive(ctx)
}

// endDrive reports whether the drive that has ended was killed; the next one is not.
func (k *killer) endDrive() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	ended := k.killed && !k.over
	k.over = k.killed
	return ended
}

// hasEnded reports whether the end of the run was saved before it was killed.
func (k *killer) hasEnded() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.at.saved && slices.ContainsFunc(k.last, func(e graph.Entry) bool { return e.Kind == graph.KindEnd && e.What == graph.Done.String() })
}

// isEmpty reports whether nothing was saved.
func (k *killer) isEmpty() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.saved == 0
}

func (k *killer) wrapStore(s graph.Store) graph.Store {
	return &killedStore{Store: s, killer: k, drive: k.isOver()}
}

func (k *killer) isOver() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.over
}

// killedStore is the store of one drive. It has no leases, so that the next drive need not wait for the end of a killed one.
type killedStore struct {
	graph.Store
	killer *killer
	drive  bool // of a drive after the killed one
}

// Append implements graph.Store.
func (s *killedStore) Append(ctx context.Context, thread string, after int64, recs []graph.Record) error {
	k := s.killer
	k.mu.Lock()
	defer k.mu.Unlock()
	if s.drive {
		return k.save(ctx, s.Store, thread, after, recs)
	}
	if k.killed {
		return errKilled
	}
	k.appends++
	kill := k.at.append == k.appends
	if !kill || k.at.saved {
		if err := k.save(ctx, s.Store, thread, after, recs); err != nil {
			return err
		}
	}
	if !kill {
		return nil
	}
	k.killed, k.last = true, listEntries(after, recs)
	k.cancel()
	return errKilled
}

// Prune implements graph.Store.
func (s *killedStore) Prune(ctx context.Context, thread string, before int64) error {
	s.killer.mu.Lock()
	killed := s.killer.killed && !s.drive
	s.killer.mu.Unlock()
	if killed {
		return errKilled
	}
	return s.Store.Prune(ctx, thread, before)
}

// save saves records and notes the effects whose results they are. The caller must hold mu.
func (k *killer) save(ctx context.Context, st graph.Store, thread string, after int64, recs []graph.Record) error {
	if err := st.Append(ctx, thread, after, recs); err != nil {
		return err
	}
	k.saved += len(recs)
	for _, e := range listEntries(after, recs) {
		if e.Kind == graph.KindEffect {
			k.recorded[e.Path+strings.ReplaceAll(e.ID, "\x00", "/")] = true
		}
	}
	return nil
}

// listEntries returns what records say in short.
func listEntries(after int64, recs []graph.Record) (list []graph.Entry) {
	for i, rec := range recs {
		if e, err := graph.DecodeEntry(rec); err == nil {
			e.Seq = after + int64(i) + 1
			list = append(list, e)
		}
	}
	return list
}

// noteEffect notes that an effect is made.
func (k *killer) noteEffect(ctx context.Context, name string) {
	key := graph.EffectKey(ctx)
	_, path, _ := strings.Cut(key, "/")
	if key == "" {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.made[path] == nil {
		k.made[path] = &madeEffect{name: name}
	}
	k.made[path].n++
	if k.recorded[path] {
		k.repeated = append(k.repeated, name)
	}
}

// listRepeats returns the effects that were made more than once, in order.
func (k *killer) listRepeats() (names []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(k.made)) {
		if m := k.made[path]; m.n > 1 {
			names = append(names, m.name)
		}
	}
	return names
}

// describePoint says when the run was killed.
func (k *killer) describePoint() string {
	var parts []string
	for _, e := range k.last {
		parts = append(parts, strings.TrimSpace(fmt.Sprintf("record %d (%s %s%s)", e.Seq, e.Kind, e.Path, e.What)))
	}
	if k.at.saved {
		return "after " + strings.Join(parts, ", ")
	}
	return "before " + strings.Join(parts, ", ")
}

// compare returns what differs between two runs.
func (a *killedRun) compare(b *killedRun) (list []string) {
	differ := func(what, x, y string) {
		if x, y = a.cleanValue(x), b.cleanValue(y); x != y {
			list = append(list, fmt.Sprintf("%s is %s, and without a crash %s", what, quoteShort(y), quoteShort(x)))
		}
	}
	differ("the status", a.result.Status+errorSuffix(a.result), b.result.Status+errorSuffix(b.result))
	differ("the output", a.result.Output, b.result.Output)
	differ("the exit code", fmt.Sprint(a.result.ExitCode), fmt.Sprint(b.result.ExitCode))
	x, y := stateTexts(a.result.State), stateTexts(b.result.State)
	if b.over {
		x, y = nil, nil
	}
	for _, key := range slices.Sorted(maps.Keys(mergeKeys(x, y))) {
		differ("the state's "+key, x[key], y[key])
	}
	for _, name := range slices.Sorted(maps.Keys(mergeKeys(a.files, b.files))) {
		x, inA := a.files[name]
		y, inB := b.files[name]
		switch {
		case !inB:
			list = append(list, "the file "+name+" is missing")
		case !inA:
			list = append(list, "the file "+name+" is there only after a crash")
		case strings.Count(x, "\n") != strings.Count(y, "\n"):
			list = append(list, fmt.Sprintf("the file %s has %d lines, and without a crash %d", name, strings.Count(y, "\n"), strings.Count(x, "\n")))
		default:
			differ("the file "+name, x, y)
		}
	}
	return list
}

// instants matches times, which differ between any two runs.
var instants = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)

// cleanValue returns a value without what differs between any two runs: the name of the scratch directory, and times.
func (a *killedRun) cleanValue(text string) string {
	return instants.ReplaceAllString(strings.ReplaceAll(text, a.scratch, "SCRATCH"), "TIME")
}

// explain returns how a killed run differs from the one without a crash, nil if it does not.
func (a *killedRun) explain(b *killedRun) *Difference {
	d := &Difference{Point: b.kill.describePoint(), What: a.compare(b)}
	for _, name := range b.kill.repeated {
		d.What = append(d.What, name+" ran again although its result was saved")
	}
	if len(d.What) == 0 {
		return nil
	}
	if repeats := b.kill.listRepeats(); len(repeats) > 0 && len(b.kill.repeated) == 0 {
		d.Culprit = strings.Join(repeats, " and ") + " ran twice: the run was killed before the result was saved. Let it do its work only once for each value of RADDLE_IDEMPOTENCY_KEY; see: raddle help durability"
	}
	return d
}

func errorSuffix(r *Result) string {
	if r.Error == "" {
		return ""
	}
	return " (" + r.Error + ")"
}

// mostQuoted is how many bytes of a value are shown.
const mostQuoted = 120

func quoteShort(text string) string {
	if len(text) > mostQuoted {
		text = text[:mostQuoted] + "…"
	}
	return fmt.Sprintf("%q", text)
}

func mergeKeys(x, y map[string]string) map[string]bool {
	all := map[string]bool{}
	for k := range x {
		all[k] = true
	}
	for k := range y {
		all[k] = true
	}
	return all
}

// stateTexts returns the values of a state as texts.
func stateTexts(o *jsonvalue.Object) map[string]string {
	texts := map[string]string{}
	if o == nil {
		return texts
	}
	for k, v := range o.All() {
		text, err := jsonvalue.Append(nil, v)
		if err != nil {
			text = fmt.Append(nil, v)
		}
		texts[k] = string(text)
	}
	return texts
}

// sqliteHeader is at the start of databases, such as knowledge bases. Their bytes differ where their content does not.
const sqliteHeader = "SQLite format 3\x00"

// readTree returns the contents of the files below directories of a root, without databases.
func readTree(root string, dirs ...string) (map[string]string, error) {
	files := map[string]string{}
	var first error
	for _, dir := range dirs {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, e os.DirEntry, err error) error {
			if err != nil || !e.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || bytes.HasPrefix(text, []byte(sqliteHeader)) {
				return err
			}
			name, err := filepath.Rel(filepath.Join(root, dir), path)
			files[filepath.ToSlash(name)] = string(text)
			return err
		})
		first = errors.Join(first, err)
	}
	return files, first
}

// adjustHost notes the effects of scripts, models and tools.
func (k *killer) adjustHost(h *flow.Host) {
	around := h.Around
	h.Around = func(ctx context.Context, c flow.NodeCall, next func(context.Context) (string, error)) (string, error) {
		if c.Kind == "script" {
			k.noteEffect(ctx, "the script of node "+c.Node)
		}
		if around != nil {
			return around(ctx, c, next)
		}
		return next(ctx)
	}
	h.Tooling.Around = append(slices.Clone(h.Tooling.Around), k.noteTool)
	h.Models = &notedModels{h.Models, k}
}

// noteTool is an agent.ToolMiddleware.
func (k *killer) noteTool(next agent.ToolFunc) agent.ToolFunc {
	return func(ctx context.Context, t tool.Tool, c tool.Call) (tool.Result, error) {
		k.noteEffect(ctx, "the tool "+t.Name)
		return next(ctx, t, c)
	}
}

// notedModels are models whose calls are noted.
type notedModels struct {
	flow.Models
	killer *killer
}

// Open implements [flow.Models].
func (m *notedModels) Open(ctx context.Context, dir, id string) (llm.Model, error) {
	opened, err := m.Models.Open(ctx, dir, id)
	if err != nil {
		return nil, err
	}
	return &notedModel{opened, m.killer}, nil
}

type notedModel struct {
	llm.Model
	killer *killer
}

// Stream implements [llm.Model].
func (m *notedModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		m.killer.noteEffect(ctx, "the request to the model")
		m.Model.Stream(ctx, r)(yield)
	}
}
