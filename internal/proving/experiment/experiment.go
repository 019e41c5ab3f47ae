package experiment

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
)

// An Experiment is a data set, variants of an agent, and how often each is tried. Process, Agent, Data, Variants, Scorers,
// Repeat and Jobs must be set.
type Experiment struct {
	Process  *app.Process
	Agent    string // name or path
	Data     *dataset.File
	Variants []Variant // the first is the baseline
	Scorers  []*score.Scorer
	Repeat   int     // how often each item is tried in each variant
	Jobs     int     // how many cells run at the same time
	Budget   float64 // in dollars: no cell starts when all of them together have cost so much; 0: no limit
	Salt     string  // part of the id of each cell: another one repeats all of them; ""
	Retry    bool    // cells that have failed are run again
	Hooks    app.UIHooks

	Limits   *agent.Limits // of the run of each cell; nil: none
	Deadline time.Duration // of the run of each cell, from its start; 0: none

	// Done is called after each cell, by one goroutine at a time; nil: it is not called.
	Done func(p Progress)

	outside score.Outside // nil: what scripts and models say; tests replace it
}

// Progress is how far an experiment is.
type Progress struct {
	Cell  *Cell
	Done  int // cells, with this one
	Cells int
	Cost  float64 // of all cells so far, in dollars
}

// A Cell is an item in a variant and a repetition, its result, and its scores.
type Cell struct {
	Item    *dataset.Item
	Variant int           // index in Experiment.Variants
	Round   int           // from 1
	Result  *score.Result // nil: it has not run
	Reused  bool          // it had run before
	Scores  []CellScore   // in the order of the scorers; nil: it has not run

	index int // of the item
}

// CellScore is what one scorer says of a cell.
type CellScore struct {
	score.Score
	Applies bool
	Err     error // why there is no score; nil: there is one, or the scorer does not apply
}

// prepared is a variant that was loaded once: it can run.
type prepared struct {
	agent string   // name or path
	key   []string // everything that decides about its runs, without the item
}

// Run runs all cells that have not run yet, scores all of them, and returns what they say. If ctx ends or a cell cannot
// run at all, the error says so, and a later Run continues. A run that fails is a result, and no error.
func (e *Experiment) Run(ctx context.Context) (*Report, error) {
	if !e.Process.Runs.KeepsRuns() {
		return nil, failure.NewUsage("choose a store that saves runs: RADDLE_STORE=sqlite:PATH", "the runs of an experiment are kept, and %s saves nothing", e.Process.Runs.StoreURL())
	}
	variants, err := e.prepareVariants()
	if err != nil {
		return nil, err
	}
	if e.outside == nil {
		e.outside = &outside{process: e.Process, hooks: e.Hooks}
	}
	cells := e.makeCells()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	w := &work{Experiment: e, variants: variants, cells: len(cells), keys: map[string]*sync.Mutex{}}
	queue := make(chan *Cell)
	var group sync.WaitGroup
	for range min(e.Jobs, len(cells)) {
		group.Go(func() {
			for c := range queue {
				if err := w.runCell(ctx, c); err != nil {
					stop(err)
				}
			}
		})
	}
	for _, c := range cells {
		if ctx.Err() != nil {
			break
		}
		queue <- c
	}
	close(queue)
	group.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return e.report(cells), nil
}

// makeCells returns the cells in the order in which they run: an item in all variants, then the next, so that an
// experiment whose budget ends has compared the same items.
func (e *Experiment) makeCells() (cells []*Cell) {
	for round := range e.Repeat {
		for index, item := range e.Data.Items {
			for variant := range e.Variants {
				cells = append(cells, &Cell{
					Item:    item,
					Variant: variant,
					Round:   round + 1,
					index:   index,
				})
			}
		}
	}
	return cells
}

// prepareVariants loads every variant once, with the first item, so that one that cannot run is found before any is paid.
func (e *Experiment) prepareVariants() (list []prepared, err error) {
	for n := range e.Variants {
		v := &e.Variants[n]
		p := prepared{agent: cmp.Or(v.Agent, e.Agent)}
		req, err := e.request(p.agent, v, e.Data.Items[0])
		if err != nil {
			return nil, err
		}
		run, err := e.Process.StartRun(req)
		if err != nil {
			return nil, fmt.Errorf("the variant '%s': %w", v.Name, err)
		}
		r := run.Record
		p.key = append([]string{r.Agent, r.Definition, r.Model, r.Override, fmt.Sprint(r.Temperature != nil, r.TopP != nil, r.NoSpawn)}, v.listChanges()...)
		for _, f := range []*float64{r.Temperature, r.TopP} {
			if f != nil {
				p.key = append(p.key, strconv.FormatFloat(*f, 'g', -1, 64))
			}
		}
		for _, s := range r.Sources {
			p.key = append(p.key, s.Path, s.Hash)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Overrides)) {
			p.key = append(p.key, name, r.Overrides[name])
		}
		run.Close()
		list = append(list, p)
	}
	return list, nil
}

// request returns how an item starts in a variant.
func (e *Experiment) request(agent string, v *Variant, item *dataset.Item) (app.Request, error) {
	variables := map[string]string{}
	maps.Copy(variables, v.Variables)
	for _, own := range item.Variables {
		variables[own.Key] = own.Value
	}
	req := app.Request{
		Agent:     agent,
		Prompt:    item.Prompt,
		Model:     v.Model,
		Templates: v.Templates,
		Variables: variables,
		State:     item.State,
		Headless:  true,
		Budget:    e.Limits,
		Deadline:  e.Deadline,
		UIHooks:   e.Hooks,
	}
	files, err := e.readFiles(item)
	if err != nil {
		return req, err
	}
	return req, req.Attach(files, e.Process.Dirs.AbsPath)
}

// work is an experiment that runs.
type work struct {
	*Experiment
	variants []prepared
	cells    int

	mu   sync.Mutex
	done int
	cost float64
	keys map[string]*sync.Mutex // held while the run of a key works: items may be equal
}

// lockKey takes the lock of a key, so that equal cells share one run. The caller must unlock it.
func (w *work) lockKey(key []string) *sync.Mutex {
	name := attemptID(key, 0)
	w.mu.Lock()
	lock := w.keys[name]
	if lock == nil {
		lock = &sync.Mutex{}
		w.keys[name] = lock
	}
	w.mu.Unlock()
	lock.Lock()
	return lock
}

// runCell runs and scores one cell, unless the budget is used up.
func (w *work) runCell(ctx context.Context, c *Cell) error {
	if w.isSpent() {
		return nil
	}
	if err := w.findResult(ctx, c); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("item %s (%s) in the variant '%s': %w", c.Item.ID, c.Item.Pos, w.Variants[c.Variant].Name, err)
	}
	cost := c.Result.Cost
	scores := make([]CellScore, len(w.Scorers))
	for n, s := range w.Scorers {
		var own CellScore
		own.Score, own.Applies, own.Err = s.Score(ctx, w.outside, c.Item, c.Result)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		cost += own.Cost
		scores[n] = own
	}
	c.Scores = scores
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done++
	w.cost += cost
	if w.Done != nil {
		w.Done(Progress{
			Cell:  c,
			Done:  w.done,
			Cells: w.cells,
			Cost:  w.cost,
		})
	}
	return nil
}

func (w *work) isSpent() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Budget > 0 && w.cost >= w.Budget
}

// idTime is the time in the ids of cells: they are old, so that they come last in lists of runs, and always the same.
var idTime = time.UnixMilli(0)

// cellKey returns everything that decides about the run of a cell.
func (w *work) cellKey(c *Cell) ([]string, error) {
	item := c.Item.AsObject()
	// what is expected and said about an item does not change its run
	for _, name := range []string{"id", "expect", "tags", "metadata"} {
		item.Delete(name)
	}
	key := append([]string{"eval", w.Salt, strconv.Itoa(c.Round), jsonvalue.Compact(item)}, w.variants[c.Variant].key...)
	files, err := w.readFiles(c.Item)
	for _, f := range files {
		key = append(key, f.Name, f.Text)
		if f.Media != nil {
			key = append(key, string(attach.BytesOf(f.Media)))
		}
	}
	return key, err
}

// findResult reads the result of a cell that has run, and runs one that has not, or has not ended.
func (w *work) findResult(ctx context.Context, c *Cell) error {
	key, err := w.cellKey(c)
	if err != nil {
		return err
	}
	defer w.lockKey(key).Unlock()
	found, err := findAttempt(ctx, w.Process, key)
	if err != nil {
		return err
	}
	if w.Retry {
		found.repeatFailed()
	}
	id := found.id
	c.Reused = found.ended
	if !found.ended {
		if err := w.drive(ctx, c, id, found.started); err != nil {
			return err
		}
	}
	c.Result, err = readResult(ctx, w.Process, id)
	return err
}

// drive starts a run, or continues it, until it ends or waits.
func (w *work) drive(ctx context.Context, c *Cell, id string, started bool) error {
	v := &w.Variants[c.Variant]
	agent := w.variants[c.Variant].agent
	var run *app.Run
	var err error
	switch {
	case started:
		options := app.ResumeOptions{UIHooks: w.Hooks}
		if c.Item.From != "" {
			options.Agent = agent
			options.AcceptChanges = true
		}
		run, err = w.Process.ResumeRun(ctx, id, options)
	case c.Item.From != "":
		run, err = w.forkItem(ctx, c.Item, v, agent, id)
	default:
		var req app.Request
		if req, err = w.request(agent, v, c.Item); err != nil {
			return err
		}
		req.ID = id
		run, err = w.Process.StartRun(req)
	}
	if err != nil {
		return err
	}
	defer run.Close()
	return driveToEnd(ctx, w.Process, run)
}

// driveToEnd works on a run until it has ended, or waits for a person. Why it has failed is in its journal: an error means
// that it has not ended.
func driveToEnd(ctx context.Context, p *app.Process, run *app.Run) error {
	_, failed := run.Drive(ctx, app.Driver{})
	d, err := p.Runs.ReadRunDetail(context.WithoutCancel(ctx), run.ID)
	switch {
	case err == nil && hasEnded(d):
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case failed != nil:
		return failed
	case err != nil:
		return err
	}
	return failure.NewInvalid("raddle explain "+run.ID, "run %s has stopped before its end", run.ID)
}

// hasEnded reports whether nothing more comes of a run by itself. One that waits for a person has ended, too: no one is
// asked.
func hasEnded(d *runs.Detail) bool {
	return d.Snapshot.Status.Final() || d.Snapshot.Status == graph.Waiting || runs.HasFailed(d.Snapshot.Status.String())
}

// forkItem makes the run of an item that begins in the middle of a recorded one.
func (w *work) forkItem(ctx context.Context, item *dataset.Item, v *Variant, agent, id string) (*app.Run, error) {
	var set []app.Setting
	if item.State != nil {
		for key, value := range item.State.All() {
			set = append(set, app.Setting{Key: key, Value: value})
		}
	}
	resume := app.ResumeOptions{
		Agent:         agent,
		AcceptChanges: true,
		UIHooks:       w.Hooks,
	}
	_, _, err := w.Process.ForkRun(ctx, app.Fork{
		From:      item.From,
		Model:     v.Model,
		Set:       set,
		Templates: v.Templates,
		ID:        id,
		Resume:    resume,
	})
	if err != nil {
		return nil, err
	}
	return w.Process.ResumeRun(ctx, id, resume)
}
