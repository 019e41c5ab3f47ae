package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/runs"
)

// Setting is a value for a key of a run's state.
type Setting struct {
	Key   string
	Value any // value as returned by flow.ParseValue
}

// editRun replaces values in the state of a run that no process drives and that has not
// ended; the journal keeps the old values. It first ends child processes that a killed drive
// left behind. It returns the place of the record.
func (p *Process) editRun(ctx context.Context, id string, set []Setting) (runs.Point, error) {
	if run, at, err := runs.SplitPoint(id); err != nil || at != 0 {
		if err == nil {
			err = failure.NewUsage("edit a copy of it: raddle runs fork "+id+", then raddle runs edit on the new run", "the past of run %s cannot be edited", run)
		}
		return runs.Point{}, err
	}
	run, err := p.ResumeRun(ctx, id, ResumeOptions{AcceptChanges: true})
	if over, ok := errors.AsType[*runs.EndedError](err); ok {
		st, err := p.Runs.OpenStore()
		if err != nil {
			return runs.Point{}, err
		}
		return runs.Point{}, &failure.Error{
			Kind: failure.Stale,
			Err:  over,
			Next: "fork it at an earlier checkpoint, and edit the copy: " + st.DescribeCheckpoints(ctx, over.ID),
		}
	}
	if err != nil {
		return runs.Point{}, err
	}
	defer run.Close()
	if run.Agent.Config != nil {
		return runs.Point{}, failure.NewUsage("fork the run before the part that you want to change, and resume the copy", "run %s is a conversation with a model: its state has no keys that you can set", run.ID)
	}
	var writes []graph.Write
	for _, s := range set {
		writes = append(writes, run.Agent.Replace(s.Key, s.Value))
	}
	seq, err := run.runner.Edit(ctx, run.Thread, writes...)
	return runs.Point{Run: run.ID, At: seq}, err
}

// Fork says how to copy a run.
type Fork struct {
	From  string    // RUN or RUN@N
	Model string    // replaces every model of the copy; "": as in the original
	Set   []Setting // values that the state of the copy gets

	Templates map[string]string // replace templates of prompts in the copy, by node of its graph.yaml
	ID        string            // of the copy; "": a new one
	Resume    ResumeOptions     // how the copy will be continued, to find out whether it can be
}

// ForkRun starts a new run as a copy of another and returns its id, and what was copied. If it
// fails, there is no new run.
func (p *Process) ForkRun(ctx context.Context, f Fork) (id string, origin runs.Point, err error) {
	if f.Model != "" {
		d, err := p.Runs.ReadRunDetail(ctx, f.From)
		if err != nil {
			return "", origin, err
		}
		f.Model = p.resolveOverride(f.Model)
		if d.Record != nil {
			err = p.Models.CheckNames(d.Record.Dir, f.Model, "")
		}
		if err != nil {
			return "", origin, err
		}
	}
	templates := map[string]string{}
	for node, text := range f.Templates {
		templates[node] = p.Tools.SecretSet().Text(text)
	}
	id, origin, err = p.Runs.ForkRun(ctx, f.From, runs.ForkChanges{Model: f.Model, Templates: templates, ID: f.ID})
	if err != nil || len(f.Set) == 0 && len(templates) == 0 {
		return id, origin, err
	}
	if len(f.Set) > 0 {
		_, err = RecordChange(ctx, p, RunChange{ID: id, Set: f.Set})
	} else {
		err = p.tryResume(ctx, id, f.Resume)
	}
	if err != nil {
		_, removeErr := p.Runs.RemoveRun(ctx, id)
		return "", origin, errors.Join(fmt.Errorf("the copy of %s was removed, because it could not be changed: %w", origin, err), removeErr)
	}
	return id, origin, nil
}

// tryResume returns why a run cannot be continued; nil: it can. It records nothing.
func (p *Process) tryResume(ctx context.Context, id string, c ResumeOptions) error {
	c.AcceptChanges = true
	run, err := p.ResumeRun(ctx, id, c)
	if err == nil {
		run.Close()
	}
	return err
}

// ParseSettings reads words of the form KEY=VALUE. Errors begin with what, such as the name of a flag.
func ParseSettings(what string, words []string) ([]Setting, error) {
	var set []Setting
	for _, word := range words {
		key, text, ok := strings.Cut(word, "=")
		if !ok || key == "" {
			return nil, failure.NewUsage("write KEY=VALUE", "%s: %q is not KEY=VALUE", what, word)
		}
		if slices.ContainsFunc(set, func(s Setting) bool { return s.Key == key }) {
			return nil, failure.NewUsage("give it one value", "%s: the key %q is given twice", what, key)
		}
		v, err := flow.ParseValue(text)
		if err != nil {
			return nil, failure.NewUsage("", "%s: the value of %s: %v", what, key, err)
		}
		set = append(set, Setting{Key: key, Value: v})
	}
	return set, nil
}

// ParseTemplates reads words of the form NODE=TEXT. Errors begin with what, such as the name of a flag.
func ParseTemplates(what string, words []string) (map[string]string, error) {
	templates := map[string]string{}
	for _, word := range words {
		node, text, ok := strings.Cut(word, "=")
		if _, again := templates[node]; !ok || node == "" || again {
			return nil, failure.NewUsage("write NODE=TEXT, each node once", "%s: %q is not NODE=TEXT, or a second text for a node", what, word)
		}
		templates[node] = text
	}
	return templates, nil
}
