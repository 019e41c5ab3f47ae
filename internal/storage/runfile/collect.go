package runfile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"raddle.dev/flow"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/foreign"
	"raddle.dev/internal/storage/runs"
)

// Source says what to export.
type Source struct {
	Archive *runs.Archive
	Run     string      // id of the run, as commands take it
	Version string      // of raddle
	Secrets *redact.Set // what must not be in the file
	// Learn adds the secrets of a start record to Secrets: those of its agent, and of its variables.
	Learn func(*runs.Record)
}

// Collect reads a run, with the runs that it was forked from as far as they still exist, and the files of its agent,
// and removes secrets from all of it.
func Collect(ctx context.Context, from Source) (*File, error) {
	st, at, err := from.Archive.LocateRun(ctx, from.Run)
	if err != nil {
		return nil, err
	}
	d, err := from.Archive.ReadRunDetail(ctx, runs.Point{Run: at.Thread, At: at.Seq}.String())
	if err != nil {
		return nil, err
	}
	f := &File{Header: Header{
		Format:   Format,
		Run:      d.Info,
		Thread:   at.Thread,
		Version:  from.Version,
		Exported: time.Now().UTC().Truncate(time.Second),
	}}
	f.Run.PID = 0
	f.Run.Host = ""
	seen := map[string]bool{}
	for point := at; point.Thread != "" && !seen[point.Thread] && len(f.Threads) < maxThreads; {
		seen[point.Thread] = true
		t, origin, err := from.readThread(ctx, st, point)
		if err != nil {
			return nil, err
		}
		if len(t.Records) == 0 {
			break // what it was forked from was removed
		}
		f.Threads = append(f.Threads, t)
		point = origin
	}
	slices.Reverse(f.Threads)
	if d.Record != nil && d.Foreign == nil { // a record from elsewhere must not choose what is read on this machine
		f.Agents = collectFiles(d.Record)
	}
	return f, f.redact(from.Secrets)
}

// readThread reads a thread up to a point, and calls Learn for each of its start records. It also returns the point that
// the thread was forked from.
func (s *Source) readThread(ctx context.Context, st journal.Store, at journal.Point) (t Thread, origin journal.Point, err error) {
	t.Name = at.Thread
	reading := history.NewReading(at.Thread)
	for r, err := range st.Read(ctx, at.Thread, journal.Range{UpTo: at.Seq}) {
		if err != nil {
			return t, origin, err
		}
		e, _, err := reading.Add(r)
		if err != nil {
			return t, origin, err
		}
		if len(t.Records) == 0 {
			origin = e.From
		}
		t.Records = append(t.Records, r)
		if s.Learn == nil || r.Kind != journal.KindStart && r.Kind != journal.KindFork && r.Kind != journal.KindSnapshot {
			continue
		}
		if rec, err := runs.DecodeRecord(reading.Meta()); err == nil {
			s.Learn(rec)
		}
	}
	return t, origin, nil
}

// largestFile is the size up to which a file of an agent is exported.
const largestFile = 4 << 20

// collectFiles reads the files on which a run depends, as far as they belong to an agent and still exist.
func collectFiles(rec *runs.Record) (list []AgentFile) {
	dirs := []string{rec.Dir}
	for _, s := range rec.Sources {
		if base := filepath.Base(s.Path); filepath.IsAbs(s.Path) && (base == "graph.yaml" || base == "config.yaml") {
			dirs = append(dirs, filepath.Dir(s.Path))
		}
	}
	is := flow.HashSources(rec.Dir, rec.Sources)
	for i, s := range rec.Sources {
		path := s.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(rec.Dir, filepath.FromSlash(path))
		}
		if a, ok := readAgentFile(dirs, path); ok && len(list) < maxFiles {
			a.Changed = is[i].Hash != s.Hash
			list = append(list, a)
		}
	}
	return list
}

// readAgentFile reads a file in one of the directories of agents.
func readAgentFile(dirs []string, path string) (a AgentFile, ok bool) {
	for _, dir := range dirs {
		rel, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		a = AgentFile{Agent: filepath.Base(dir), Path: filepath.ToSlash(rel)}
		if checkPath(a) != nil {
			return a, false
		}
		text, err := plainfile.ReadBeneath(dir, rel, largestFile)
		a.Text = string(text)
		return a, err == nil && utf8.Valid(text)
	}
	return a, false
}

// redact removes secrets from everything in the file.
func (f *File) redact(secrets *redact.Set) error {
	change := func(b []byte) []byte {
		if len(b) > 0 && json.Valid(b) {
			return redact.RedactJSON(b, secrets.Text)
		}
		return secrets.Bytes(b)
	}
	for i := range f.Agents {
		f.Agents[i].Text = secrets.Text(f.Agents[i].Text)
	}
	for i := range f.Threads {
		t := &f.Threads[i]
		for j, r := range t.Records {
			var err error
			if t.Records[j], err = journal.RewriteRecord(t.Name, r, change); err != nil {
				return fmt.Errorf("secrets cannot be removed: %w", err)
			}
		}
	}
	head, err := json.Marshal(f.Header)
	if err != nil {
		return err
	}
	f.Header = Header{}
	return json.Unmarshal(change(head), &f.Header)
}

// Imported says what an import has done.
type Imported struct {
	Run     string   `json:"run"`
	Thread  string   `json:"thread"`
	Records int      `json:"records"`         // that were added
	Threads []string `json:"threads"`         // that were created
	Known   bool     `json:"known,omitempty"` // the store had the run already
}

// Describe says what was done, as part of a line.
func (i *Imported) Describe() string {
	if i.Known {
		return "the store has run " + i.Run + " already"
	}
	return "run " + i.Run + " is imported: " + wording.FormatCount(i.Records, "record")
}

// Describe says how much is in the file.
func (f *File) Describe() string {
	records := 0
	for _, t := range f.Threads {
		records += len(t.Records)
	}
	return wording.FormatCount(records, "record") + ", " + wording.FormatCount(len(f.Agents), "file") + " of agents"
}

// ErrExists reports that a store has another thread with the same name.
var ErrExists = errors.New("the store has another run with this id")

// Import puts the threads of the file into a store. A thread that the store has already, with at least the same
// records, stays as it is; another one with the same name is [ErrExists], and then nothing is imported. The store gets
// a mark for each thread that it did not have: nothing of what it brings counts before a person has seen what it would
// do. origin is the name of the file, for that person.
func (f *File) Import(ctx context.Context, st journal.Store, origin string) (Imported, error) {
	done := Imported{Run: f.Run.Run, Thread: f.Thread, Threads: []string{}}
	var missing []*Thread
	for i := range f.Threads {
		t := &f.Threads[i]
		same, exists, err := t.compare(ctx, st)
		switch {
		case err != nil:
			return done, err
		case !exists:
			missing = append(missing, t)
		case !same:
			return done, &failure.Error{Kind: failure.Stale, Err: fmt.Errorf("%s: %w", t.Name, ErrExists), Next: "remove it first: raddle runs rm " + t.Name + "; or import into another store: RADDLE_STORE=sqlite:PATH"}
		}
	}
	for _, t := range missing { // before anything is there that could be continued
		if err := foreign.Put(ctx, st, t.Name, foreign.Mark{From: cmp.Or(origin, "a file"), At: time.Now().UTC().Truncate(time.Second), Head: t.Records[len(t.Records)-1].Seq}); err != nil {
			return done, err
		}
	}
	for _, t := range missing {
		if err := t.appendTo(ctx, st); err != nil {
			return done, fmt.Errorf("thread %s: %w", t.Name, err)
		}
		done.Records += len(t.Records)
		done.Threads = append(done.Threads, t.Name)
	}
	done.Known = len(missing) == 0
	return done, nil
}

// CopyThreads puts the journals of a file that this process has collected into an empty store. It gives them no marks:
// they are those of this machine.
func (f *File) CopyThreads(ctx context.Context, st journal.Store) error {
	for i := range f.Threads {
		if err := f.Threads[i].appendTo(ctx, st); err != nil {
			return fmt.Errorf("thread %s: %w", f.Threads[i].Name, err)
		}
	}
	return nil
}

// compare reports whether a store has a thread with the same name, and whether it holds the records of this one: their
// numbers, kinds and times. Their texts may differ, because secrets were removed from one of them.
func (t *Thread) compare(ctx context.Context, st journal.Store) (same, exists bool, err error) {
	last := t.Records[len(t.Records)-1].Seq
	n := 0
	for r, err := range st.Read(ctx, t.Name, journal.Range{UpTo: last, Heads: true}) {
		if err != nil {
			return false, exists, err
		}
		exists = true
		at := r.Seq - t.Records[0].Seq
		if at < 0 {
			continue // pruned in the file
		}
		if w := t.Records[at]; w.Kind != r.Kind || w.Time != r.Time {
			return false, true, nil
		}
		n++
	}
	return n > 0 && (n == len(t.Records) || n < len(t.Records) && t.isPruned(ctx, st)), exists, nil
}

// isPruned reports whether a store holds the newest of the records: its beginning was pruned.
func (t *Thread) isPruned(ctx context.Context, st journal.Store) bool {
	last := t.Records[len(t.Records)-1]
	for r, err := range st.Read(ctx, t.Name, journal.Range{After: last.Seq - 1, UpTo: last.Seq, Heads: true}) {
		return err == nil && r.Kind == last.Kind && r.Time == last.Time
	}
	return false
}
