package runs

import (
	"context"
	"fmt"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/tool"
)

// CallChanges are the changes of files that a call has recorded.
type CallChanges struct {
	Seq     int64 // number of the record
	Changes []tool.FileChange
}

// mayChangeFiles reports whether an effect is a call of one of the built-in tools that change files.
func mayChangeFiles(id string) bool {
	name, _ := agent.ToolOfEffect(graph.ParseEffectID(id).Name)
	return strings.HasPrefix(name, "fs_") || name == "apply_patch"
}

// ReadChanges returns what built-in tools did to files, as some records of a thread have it, oldest first. It
// includes the calls of agents below the conversation. last is 0 for the end of the thread.
func (s *Store) ReadChanges(ctx context.Context, thread string, first, last int64) (list []CallChanges, err error) {
	var at []int64
	for e, err := range history.Entries(ctx, s, thread) {
		if err != nil {
			return nil, err
		}
		if e.Seq < first {
			break
		}
		if (last == 0 || e.Seq <= last) && e.Kind == journal.KindEffect && mayChangeFiles(e.ID) {
			at = append(at, e.Seq)
		}
	}
	for i := len(at) - 1; i >= 0; i-- {
		for r, err := range journal.Records(ctx, s, thread, journal.Range{After: at[i] - 1, UpTo: at[i]}) {
			if err != nil {
				return nil, err
			}
			result, err := readResult(r.Data)
			if err != nil {
				return nil, fmt.Errorf("thread %s, record %d: %w", thread, r.Seq, err)
			}
			if result != nil && len(result.Changes) > 0 {
				list = append(list, CallChanges{r.Seq, result.Changes})
			}
		}
	}
	return list, nil
}
