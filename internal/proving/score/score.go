package score

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/testcase"
)

// A Result is what one run has made of an item.
type Result struct {
	Run    string // its id
	Status string // as in lists of runs; StatusDone is the only one that has an output
	Error  string // why it has failed, or for what it waits; "": it is done
	Output string
	State  *jsonvalue.Object // at its end; nil: it has none

	Path       []testcase.Event // the nodes that ran
	Calls      []testcase.Event // of tools
	ModelCalls int
	Cost       float64 // in dollars
	Unpriced   int     // model calls whose price is not known
	Seconds    float64 // in which it worked, without what it waited for people
}

// StatusDone is the status of a run that has an output.
const StatusDone = "done"

// A Score is how good a result is.
type Score struct {
	Value  float64 // from 0 to 1, more is better
	Reason string  // in one line; "": there is nothing to say
	Cost   float64 // of the judge, in dollars
}

// An Outside does what a scorer cannot do itself.
type Outside interface {
	// RunScript runs a script with a text as its standard input, and returns what it prints.
	RunScript(ctx context.Context, path string, input []byte) ([]byte, error)
	// AskJudge returns the reply of a model, and what it cost in dollars. Equal questions may get the same reply. An
	// empty model is the one that the configuration names.
	AskJudge(ctx context.Context, model string, q Question) (reply string, cost float64, err error)
}

// A Scorer scores results in one way.
type Scorer struct {
	Name string // unique in its list
	Kind string // one of the names of scorers in files
	Pos  strictyaml.Pos

	Script string // the path of the script that it runs; "": none
	of     string // path of a value of the state that is scored instead of the output; ""
	work   worker
}

// A worker scores one result. applies is false if the item says nothing that it could compare.
type worker func(c *work) (s Score, applies bool, err error)

// work is what a worker has: the item, the result, and the value that is scored.
type work struct {
	ctx     context.Context
	outside Outside
	item    *dataset.Item
	result  *Result
	value   any
}

// text returns the value as a text.
func (c *work) text() string { return testcase.Text(c.value) }

// Score scores the result of an item. applies is false if the item says nothing about it, for example because it expects
// nothing. A run that is not done has the score 0. An error means that there is no score: a script or a judge has failed,
// or ctx has ended.
func (s *Scorer) Score(ctx context.Context, outside Outside, item *dataset.Item, r *Result) (score Score, applies bool, err error) {
	c := &work{
		ctx:     ctx,
		outside: outside,
		item:    item,
		result:  r,
		value:   r.Output,
	}
	if r.Status != StatusDone {
		return Score{Reason: "the run is " + r.Status + ": " + r.Error}, true, nil
	}
	if s.of != "" {
		found, ok := testcase.Lookup(r.State, s.of)
		if !ok {
			return Score{Reason: "the state has no " + s.of}, true, nil
		}
		c.value = found
	}
	score, applies, err = s.work(c)
	if err != nil {
		return Score{}, false, fmt.Errorf("the scorer %s: %w", s.Name, err)
	}
	return score, applies, nil
}

// UsesJudge reports whether a scorer asks a model.
func (s *Scorer) UsesJudge() bool { return s.Kind == kindJudge }

// Default returns what scores results if no scorers are named: what items expect.
func Default() []*Scorer {
	return []*Scorer{{
		Name: kindExpect,
		Kind: kindExpect,
		work: scoreExpect,
	}}
}

// passIf returns 1, or 0 with a reason.
func passIf(ok bool, format string, args ...any) Score {
	if ok {
		return Score{Value: 1}
	}
	return Score{Reason: fmt.Sprintf(format, args...)}
}

// passUnless returns 1 if nothing was not as expected.
func passUnless(failed []testcase.Failure) Score {
	var why []string
	for n := range failed {
		why = append(why, failed[n].Message)
	}
	return passIf(len(failed) == 0, "%s", strings.Join(why, "; "))
}

// maxShown is the number of characters of a value that a reason shows.
const maxShown = 120

func show(v any) string {
	return wording.CutText(jsonvalue.Compact(v), maxShown, "…")
}
