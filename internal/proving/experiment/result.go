package experiment

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/runs"
)

// An attempt is the newest run of a key.
type attempt struct {
	id      string // of the newest one, or of the first one to come
	next    string // of the one after it
	started bool
	ended   bool
	failed  bool
	over    bool // it cannot be continued
}

// repeatFailed makes a run that has failed one that is to be continued where it failed, or else one that is to come.
func (a *attempt) repeatFailed() {
	switch {
	case !a.ended || !a.failed:
	case a.over:
		a.id = a.next
		a.started = false
		a.ended = false
	default:
		a.ended = false
	}
}

// maxAttempts is how often a key may be run again after a failure.
const maxAttempts = 1000

// findAttempt returns the newest run of a key. Their ids follow from the key and from a number.
func findAttempt(ctx context.Context, p *app.Process, key []string) (a attempt, err error) {
	a.next = attemptID(key, 0)
	for n := range maxAttempts {
		d, err := p.Runs.ReadRunDetail(ctx, a.next)
		if errors.As(err, new(*runs.UnknownError)) {
			if !a.started {
				a.id = a.next
			}
			return a, nil
		}
		if err != nil {
			return a, err
		}
		a = attempt{
			id:      a.next,
			next:    attemptID(key, n+1),
			started: true,
			ended:   hasEnded(d),
			failed:  d.Snapshot.Status != graph.Done,
			over:    d.Snapshot.Status.Final() || d.Snapshot.Status == graph.Waiting,
		}
	}
	return a, failure.NewInvalid("change the data set", "run %s was repeated %d times", a.id, maxAttempts)
}

func attemptID(key []string, number int) string {
	parts := make([]string, 0, 2*len(key)+1)
	parts = append(parts, strconv.Itoa(number))
	for _, part := range key {
		parts = append(parts, strconv.Itoa(len(part)), part) // no two keys are the same text
	}
	return graph.DeriveID(idTime, parts...)
}

// readResult reads from its journal what a run has made.
func readResult(ctx context.Context, p *app.Process, id string) (*score.Result, error) {
	v, err := p.Runs.ReadView(ctx, id)
	if err != nil {
		return nil, err
	}
	models, err := v.ReadModels(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := v.ReadTree(ctx)
	if err != nil {
		return nil, err
	}
	tree.RemoteCalls(&models)
	r := &score.Result{
		Run:        id,
		Status:     v.Status,
		Error:      v.Reason,
		ModelCalls: models.Count,
		Seconds:    v.Snapshot.Active.Seconds(),
	}
	r.Cost, _, r.Unpriced = p.Models.CostOf(models)
	addNames(&r.Path, v.Path())
	for _, call := range v.ToolCalls() {
		args, err := jsonvalue.Parse(call.Args)
		if err != nil {
			args = string(call.Args)
		}
		r.Calls = append(r.Calls, testcase.Event{Name: call.Tool, Args: args})
	}
	if state, err := jsonvalue.Parse(flow.StoredJSON(v.Snapshot.Values)); err == nil {
		r.State, _ = state.(*jsonvalue.Object)
	}
	if v.Snapshot.Status == graph.Done {
		r.Status = score.StatusDone
		r.Output = flow.OutcomeOf(graph.Result{Status: graph.Done, Value: v.Snapshot.Result}).Output
	}
	if v.Snapshot.Status == graph.Waiting && r.Error == "" && len(v.Snapshot.Questions) > 0 {
		r.Error = "it asks: " + v.Snapshot.Questions[0].Prompt
	}
	return r, nil
}

// addNames adds the nodes of a path, which has lists where nodes ran at the same time.
func addNames(to *[]testcase.Event, path []any) {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			*to = append(*to, testcase.Event{Name: step})
		case []string:
			for _, name := range step {
				*to = append(*to, testcase.Event{Name: name})
			}
		case []any:
			addNames(to, step)
		}
	}
}

// readFiles reads the files of an item, which are beneath the directory of the data set: it may come from someone else.
func (e *Experiment) readFiles(item *dataset.Item) (files []attach.File, err error) {
	for _, name := range item.Files {
		dir := filepath.Dir(e.Data.Path)
		text, err := plainfile.ReadBeneath(dir, filepath.FromSlash(name), attach.MaxMedia)
		if err != nil {
			return nil, &failure.Error{Kind: failure.Invalid, Err: err, Next: "the files of item " + item.ID + " (" + item.Pos.String() + ") are in the directory of the data set, or below it"}
		}
		f, err := attach.New(filepath.Join(dir, name), text)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}
