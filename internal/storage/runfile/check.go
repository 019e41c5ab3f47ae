package runfile

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"unicode"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
)

// check checks what a file says: names, paths, and the journals.
func (f *File) check() error {
	if len(f.Threads) == 0 {
		return errors.New("it has no journal")
	}
	seen := map[string]bool{}
	for i := range f.Threads {
		t := &f.Threads[i]
		if err := checkThreadName(t.Name); err != nil {
			return err
		}
		if seen[t.Name] {
			return fmt.Errorf("thread %s is there twice", t.Name)
		}
		seen[t.Name] = true
		if len(t.Records) == 0 {
			return fmt.Errorf("thread %s has no records", t.Name)
		}
	}
	if f.Thread != f.Threads[len(f.Threads)-1].Name {
		return fmt.Errorf("the last thread is not that of the run: %.80q", f.Thread)
	}
	for _, a := range f.Agents {
		if err := checkPath(a); err != nil {
			return err
		}
	}
	return f.checkJournals()
}

// checkThreadName refuses names that raddle does not give to threads.
func checkThreadName(name string) error {
	plain := func(s string) bool {
		return s != "" && s != "." && s != ".." && !strings.ContainsFunc(s, func(r rune) bool {
			return r == '/' || r == '\\' || r == '@' || unicode.IsSpace(r) || !unicode.IsPrint(r)
		})
	}
	agent, session, ok := runs.SessionOf(name)
	if !ok {
		agent = name
		session = name
	}
	if agentbundle.IsThread(name) || foreign.IsThread(name) {
		return fmt.Errorf("%.80q cannot be the name of a run: the store keeps something else under it", name)
	}
	if len(name) > longestName || !plain(agent) || !plain(session) {
		return fmt.Errorf("%.80q cannot be the name of a thread", name)
	}
	return nil
}

// checkPath refuses paths that lead out of the agent's directory, and hidden files.
func checkPath(f AgentFile) error {
	parts := append([]string{f.Agent}, strings.Split(f.Path, "/")...)
	for _, p := range parts {
		if p == "" || strings.HasPrefix(p, ".") || strings.ContainsAny(p, `/\:`) || strings.ContainsFunc(p, unicode.IsControl) || len(p) > longestName {
			return fmt.Errorf("%.80q cannot be a file of the agent %.40q", f.Path, f.Agent)
		}
	}
	if path.Clean(f.Path) != f.Path {
		return fmt.Errorf("%.80q cannot be a file of the agent %.40q", f.Path, f.Agent)
	}
	return nil
}

// checkJournals checks the checksums of the records and folds each journal.
func (f *File) checkJournals() error {
	for _, t := range f.Threads {
		reading := history.NewReading(t.Name)
		for _, r := range t.Records {
			if _, _, err := reading.Add(r); err != nil {
				return fmt.Errorf("the journal of %s cannot be read: %w", t.Name, err)
			}
		}
		if _, err := runs.DecodeRecord(reading.Meta()); err != nil {
			return fmt.Errorf("%s is not a run of an agent: %w", t.Name, err)
		}
	}
	return nil
}

// appendTo creates the thread in a store. If its beginning was pruned, it is pruned there, too: the numbers of its
// records stay.
func (t *Thread) appendTo(ctx context.Context, st journal.Store) error {
	first := t.Records[0].Seq
	list := make([]journal.Record, first-1, first-1+int64(len(t.Records)))
	for i := range list {
		list[i] = journal.Record{Kind: journal.KindVoid, Time: t.Records[0].Time}
	}
	if err := st.Append(ctx, t.Name, 0, append(list, t.Records...)); err != nil {
		return err
	}
	if first == 1 {
		return nil
	}
	return st.Prune(ctx, t.Name, first)
}
