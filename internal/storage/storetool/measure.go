package storetool

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/foreign"
)

// A Size counts records and their bytes, without what a store needs to keep them.
type Size struct {
	Name    string `json:"name"`
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
}

// A MeasureResult is how much a store has.
type MeasureResult struct {
	Threads int    `json:"threads"`
	Bundles int    `json:"bundles"` // of agents
	Records int64  `json:"records"`
	Bytes   int64  `json:"bytes"`
	File    int64  `json:"file,omitempty"` // bytes of the file or the tables; 0: not known
	Kinds   []Size `json:"kinds"`          // of records, the largest first
	Largest []Size `json:"largest"`        // threads, the largest first
}

// maxLargest is how many of the largest threads a result has.
const maxLargest = 5

// A sizer knows how much space a store takes.
type sizer interface {
	Size(ctx context.Context) (bytes int64, err error)
}

// MeasureStore counts the records of a store and their bytes. It reads all of them.
func MeasureStore(ctx context.Context, st journal.Store) (MeasureResult, error) {
	var result MeasureResult
	list, err := listThreads(ctx, st)
	if err != nil {
		return result, err
	}
	kinds := map[string]*Size{}
	for _, t := range list {
		size := Size{Name: t.Name}
		for r, err := range st.Read(ctx, t.Name, journal.Range{}) {
			if err != nil {
				return result, err
			}
			n := int64(len(r.Head) + len(r.Data))
			name := r.Kind.String()
			switch {
			case agentbundle.IsThread(t.Name):
				name = "bundle"
			case foreign.IsThread(t.Name):
				name = "mark"
			}
			if kinds[name] == nil {
				kinds[name] = &Size{Name: name}
			}
			kinds[name].Records++
			kinds[name].Bytes += n
			size.Records++
			size.Bytes += n
		}
		switch {
		case agentbundle.IsThread(t.Name):
			result.Bundles++
		case !foreign.IsThread(t.Name):
			result.Threads++
		}
		result.Records += size.Records
		result.Bytes += size.Bytes
		result.Largest = append(result.Largest, size)
		if len(result.Largest) > 2*maxLargest {
			result.Largest = keepLargest(result.Largest, maxLargest)
		}
	}
	result.Largest = keepLargest(result.Largest, maxLargest)
	for _, k := range kinds {
		result.Kinds = append(result.Kinds, *k)
	}
	result.Kinds = keepLargest(result.Kinds, len(result.Kinds))
	if s, ok := st.(sizer); ok {
		result.File, err = s.Size(ctx)
	}
	return result, err
}

// keepLargest returns the n largest sizes, the largest first.
func keepLargest(list []Size, n int) []Size {
	slices.SortFunc(list, func(a, b Size) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return list[:min(n, len(list))]
}

// Text returns the result as lines for people.
func (m *MeasureResult) Text() string {
	var b strings.Builder
	line := func(s Size) { fmt.Fprintf(&b, "%10d  %9.1f kB  %s\n", s.Records, float64(s.Bytes)/1e3, s.Name) }
	fmt.Fprintf(&b, "journals: %d\n", m.Threads)
	if m.Bundles > 0 {
		fmt.Fprintf(&b, "bundles of agents: %d\n", m.Bundles)
	}
	b.WriteString("   records         bytes\n")
	line(Size{"in all journals", m.Records, m.Bytes})
	for _, k := range m.Kinds {
		line(Size{"  " + k.Name, k.Records, k.Bytes})
	}
	if len(m.Largest) > 0 {
		b.WriteString("the largest journals\n")
	}
	for _, l := range m.Largest {
		line(l)
	}
	if m.File > 0 {
		fmt.Fprintf(&b, "on disk: %.1f kB\n", float64(m.File)/1e3)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
