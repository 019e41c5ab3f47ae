package graph

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Branch is a thread and the threads that were forked from it.
type Branch struct {
	RunInfo          // From says where it was forked
	Forks   []Branch // by the record they were forked at, then by name
}

// Lineage returns the tree of forks among the threads whose name begins with prefix.
// Its roots, by name, are the threads that were not forked, or whose origin is not
// among them. It reads no state.
func Lineage(ctx context.Context, st Store, prefix string) ([]Branch, error) {
	if st == nil {
		return nil, errNoStore
	}
	var l lineage
	for t, err := range st.Threads(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		i, err := Describe(t)
		if err != nil {
			return nil, err
		}
		l.all = append(l.all, i)
	}
	slices.SortFunc(l.all, func(a, b RunInfo) int { return strings.Compare(a.Thread, b.Thread) })
	l.forks = map[string][]RunInfo{}
	for _, i := range l.all {
		l.forks[i.From.Thread] = append(l.forks[i.From.Thread], i)
	}
	return l.buildTrees(), nil
}

type lineage struct {
	all   []RunInfo
	forks map[string][]RunInfo // by origin; "": of no thread
	seen  map[string]bool
}

func (l *lineage) buildTrees() (roots []Branch) {
	l.seen = map[string]bool{}
	for _, i := range l.all {
		if !l.hasThread(i.From.Thread) {
			roots = append(roots, l.buildBranch(i))
		}
	}
	for _, i := range l.all { // threads that were deleted and forked again, in a circle
		if !l.seen[i.Thread] {
			roots = append(roots, l.buildBranch(i))
		}
	}
	slices.SortFunc(roots, func(a, b Branch) int { return strings.Compare(a.Thread, b.Thread) })
	return roots
}

func (l *lineage) hasThread(thread string) bool {
	_, ok := slices.BinarySearchFunc(l.all, thread, func(i RunInfo, name string) int { return strings.Compare(i.Thread, name) })
	return ok
}

func (l *lineage) buildBranch(i RunInfo) Branch {
	l.seen[i.Thread] = true
	b := Branch{RunInfo: i}
	for _, f := range l.forks[i.Thread] {
		if !l.seen[f.Thread] {
			b.Forks = append(b.Forks, l.buildBranch(f))
		}
	}
	slices.SortStableFunc(b.Forks, func(a, b Branch) int { return cmp.Compare(a.From.Seq, b.From.Seq) })
	return b
}
