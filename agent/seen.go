package agent

import (
	"cmp"
	"slices"

	"raddle.dev/tool"
)

// knownFiles returns how a conversation has seen a file last: see [tool.Call]. It is nil if none of the tools reads
// files for the model.
func (a *Act) knownFiles(entries []Entry, tools []tool.Tool) func(path string) *tool.SeenFile {
	if !slices.ContainsFunc(tools, func(t tool.Tool) bool { return t.Sees }) {
		return nil
	}
	return func(path string) *tool.SeenFile {
		path = a.redact(path)
		for i := len(entries) - 1; i >= 0 && entries[i].Op != OpClear; i-- {
			for _, f := range slices.Backward(entries[i].Seen) {
				if f.Path == path {
					return &f
				}
			}
		}
		return nil
	}
}

// addSeen adds what a call has seen.
func (st *actStep) addSeen(files []tool.SeenFile) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.seen = append(st.seen, files...)
}

// listSeen returns what the calls of the step have seen, in an order that does not depend on which of them ended first.
func (st *actStep) listSeen() []tool.SeenFile {
	slices.SortStableFunc(st.seen, func(a, b tool.SeenFile) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Hash, b.Hash))
	})
	return slices.CompactFunc(st.seen, func(a, b tool.SeenFile) bool { return a == b })
}
