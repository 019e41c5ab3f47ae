package runs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
)

// ListRunTree returns the runs of ListRuns as a tree, with their depths: each fork follows the run that it was forked
// from. Runs that are not forks are newest first; forks of one run are in the order of the points at which they were
// forked. enough, if it is not 0, is a number of runs after which no more trees are read.
func (a *Archive) ListRunTree(ctx context.Context, enough int) (infos []Info, depths []int, err error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return nil, nil, err
	}
	index, ok := st.inside().(journal.Index)
	if !ok {
		return st.listLineage(ctx)
	}
	count, err := index.CountLines(ctx)
	if err != nil {
		return nil, nil, explainStoreError(ctx, err)
	}
	if count[""] > 0 {
		return st.listLineage(ctx)
	}
	w := &treeWalk{store: st, index: index, jobs: &jobSet{store: st}, enough: enough}
	err = w.walkTrees(ctx)
	return w.infos, w.depths, err
}

// listLineage is ListRunTree for an index that is not complete: it reads the first and the last record of each thread.
func (s *Store) listLineage(ctx context.Context) (infos []Info, depths []int, err error) {
	trees, err := history.Lineage(ctx, s, "")
	if err != nil {
		return nil, nil, err
	}
	trees = slices.DeleteFunc(trees, func(b history.Branch) bool { return !isRunThread(b.Thread) })
	slices.SortStableFunc(trees, func(a, b history.Branch) int { return strings.Compare(RunOf(a.Thread, a.Run), RunOf(b.Thread, b.Run)) })
	jobs := &jobSet{store: s}
	var add func(b history.Branch, depth int) error
	add = func(b history.Branch, depth int) error {
		var i Info
		err := b.Damage
		if err == nil {
			err = s.completeInfo(ctx, &b.RunInfo)
		}
		if err == nil {
			i, err = s.describeListed(ctx, b.RunInfo, jobs)
		}
		if IsDamage(err) {
			i = damagedInfo(Info{Run: b.Thread}, err)
			err = nil
		}
		infos = append(infos, i)
		depths = append(depths, depth)
		for _, fork := range b.Forks {
			if err == nil {
				err = add(fork, depth+1)
			}
		}
		return err
	}
	for _, b := range slices.Backward(trees) {
		if err := add(b, 0); err != nil {
			return nil, nil, err
		}
	}
	return infos, depths, nil
}

// A treeWalk collects runs with their forks from an index in which every line says what there is.
type treeWalk struct {
	store  *Store
	index  journal.Index
	jobs   *jobSet
	enough int

	infos  []Info
	depths []int
}

// walkTrees collects the trees, page by page.
func (w *treeWalk) walkTrees(ctx context.Context) error {
	for r := (journal.LineRange{Limit: firstLines}); ; r.Limit = min(r.Limit*4, maxLines) {
		page, err := w.index.ListLines(ctx, r)
		if err != nil {
			return explainStoreError(ctx, err)
		}
		var roots []journal.Line
		for i := range page {
			isRoot, err := w.isRoot(ctx, &page[i])
			if err != nil {
				return err
			}
			if isRoot {
				roots = append(roots, page[i])
			}
		}
		if err := w.addTrees(ctx, roots); err != nil {
			return err
		}
		if len(page) < r.Limit || w.enough > 0 && len(w.infos) >= w.enough {
			return nil
		}
		r.Below = page[len(page)-1].Order
		r.BelowThread = page[len(page)-1].Thread
	}
}

// isRoot reports whether no line is above one: it is no fork, what it was forked from is gone, or it is the first by
// name of a circle, which threads that were deleted and forked again may be in.
func (w *treeWalk) isRoot(ctx context.Context, l *journal.Line) (bool, error) {
	if !isRunThread(l.Thread) {
		return false, nil
	}
	seen := map[string]bool{l.Thread: true}
	for parent := l.Parent; parent != ""; {
		above, ok, err := w.index.ReadLine(ctx, parent)
		if err != nil {
			return false, explainStoreError(ctx, err)
		}
		switch {
		case !ok, !isRunThread(parent):
			return parent == l.Parent, nil
		case parent == l.Thread: // it is in a circle
			for other := range seen {
				if other < l.Thread {
					return false, nil
				}
			}
			return true, nil
		case seen[parent]: // the circle is above it
			return false, nil
		}
		seen[parent] = true
		parent = above.Parent
	}
	return l.Parent == "", nil
}

// addTrees adds lines with all that is below them, which it reads level by level.
func (w *treeWalk) addTrees(ctx context.Context, roots []journal.Line) error {
	below := map[string][]journal.Line{}
	seen := map[string]bool{}
	for level := roots; len(level) > 0; {
		if err := w.jobs.readJobs(ctx, level); err != nil {
			return err
		}
		var threads []string
		for i := range level {
			if thread := level[i].Thread; !seen[thread] {
				seen[thread] = true
				threads = append(threads, thread)
			}
		}
		forks, err := w.index.ListForks(ctx, threads)
		if err != nil {
			return explainStoreError(ctx, err)
		}
		level = nil
		for i := range forks {
			if l := &forks[i]; isRunThread(l.Thread) && !seen[l.Thread] {
				below[l.Parent] = append(below[l.Parent], *l)
				level = append(level, *l)
			}
		}
	}
	for i := range roots {
		if err := w.addBranch(ctx, &roots[i], 0, below); err != nil {
			return err
		}
	}
	return nil
}

// addBranch adds a line and those below it.
func (w *treeWalk) addBranch(ctx context.Context, from *journal.Line, depth int, below map[string][]journal.Line) error {
	l, known := decodeLine(from)
	if known {
		t := newListedLine(from, l)
		i, err := w.store.describeListed(ctx, t.info, w.jobs)
		if err != nil {
			return err
		}
		i.line = l
		w.infos = append(w.infos, i)
		w.depths = append(w.depths, depth)
	}
	seqOf := func(l journal.Line) (seq int64) {
		if d, known := decodeLine(&l); known {
			seq = d.From.Seq
		}
		return seq
	}
	slices.SortStableFunc(below[from.Thread], func(a, b journal.Line) int { return cmp.Compare(seqOf(a), seqOf(b)) })
	for i := range below[from.Thread] {
		if err := w.addBranch(ctx, &below[from.Thread][i], depth+1, below); err != nil {
			return err
		}
	}
	return nil
}
