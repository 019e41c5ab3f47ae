package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/stores"
)

// sessionPrefix is the prefix of the names of the threads that runs of one conversation
// append to. Every other thread is one run and has its name.
const sessionPrefix = "session/"

// NameSession returns the name of the thread of an agent's session.
func NameSession(agent, name string) string { return sessionPrefix + agent + "/" + name }

// SessionOf splits the name of a session's thread. ok is false for the thread of
// a single run.
func SessionOf(thread string) (agent, name string, ok bool) {
	rest, ok := strings.CutPrefix(thread, sessionPrefix)
	if !ok {
		return "", "", false
	}
	agent, name, ok = strings.Cut(rest, "/")
	return agent, name, ok
}

// SplitBranch splits the name of a session into that of the conversation and the number of the
// branch: 1 for a name without one.
func SplitBranch(session string) (name string, number int) {
	at := strings.LastIndexByte(session, '~')
	if at > 0 {
		if n, err := strconv.ParseUint(session[at+1:], 10, 31); err == nil && n > 1 {
			return session[:at], int(n)
		}
	}
	return session, 1
}

// FamilyOf returns the name of a thread without the number of a branch: that of the conversation, or of the single run.
func FamilyOf(thread string) string {
	agent, session, ok := SessionOf(thread)
	if !ok {
		return thread
	}
	name, _ := SplitBranch(session)
	return NameSession(agent, name)
}

// A runRef is the place of a run in the store.
type runRef struct {
	thread string
	run    string
	first  int64 // its start record, if a session was searched
	last   int64 // the newest record of an earlier turn of a session; 0 if the run is the last one of the thread
	copied bool  // the thread is a branch that was forked after the run
}

// containsRecord reports whether a record of the thread belongs to the run.
func (r runRef) containsRecord(seq int64) bool {
	return seq >= r.first && (r.last == 0 || seq <= r.last)
}

// RunOf returns the id of the last run of a thread.
func RunOf(thread, run string) string {
	if _, _, ok := SessionOf(thread); ok {
		return run
	}
	return thread
}

// FindThread finds the thread of a run that is to be changed or continued, by its id, a
// unique prefix of it, last or last~N, or the thread's name.
func (a *Archive) FindThread(ctx context.Context, id string) (*Store, string, error) {
	st, found, err := a.locateRun(ctx, id)
	if err == nil && found.last > 0 {
		agent, name, _ := SessionOf(found.thread)
		err = failure.NewStale("name the session itself: "+found.thread, "run %s is an earlier turn of session '%s' of agent '%s'", found.run, name, agent)
	}
	return st, found.thread, err
}

// locateRun finds a run by its id, a unique prefix of it, last or last~N, or the name of its thread.
func (a *Archive) locateRun(ctx context.Context, id string) (*Store, runRef, error) {
	if !strings.HasPrefix(id, sessionPrefix) {
		id = strings.ToLower(id)
	}
	id, err := a.ResolveLast(ctx, id)
	if err != nil {
		return nil, runRef{}, err
	}
	st, err := a.openExistingStore()
	if err != nil && !errors.Is(err, errNoStore) {
		return nil, runRef{}, err
	}
	var found []runRef
	if err == nil && id != "" {
		if found, err = st.findMatchingRuns(ctx, id); err != nil {
			return nil, runRef{}, err
		}
	}
	switch len(found) {
	case 1:
		return st, found[0], nil
	case 0:
		return nil, runRef{}, &failure.Error{Kind: failure.Stale, Next: "see the runs with: raddle runs ls", Err: &UnknownError{ID: id, Store: a.describePlace()}}
	}
	var names []string
	for _, f := range slices.Backward(found) {
		names = append(names, f.run)
	}
	if len(names) > maxNamedRuns {
		names = append(names[:maxNamedRuns], "...")
	}
	return nil, runRef{}, failure.NewStale("type more of the id", "%q matches several runs: %s", id, strings.Join(names, ", "))
}

// UnknownError reports that there is no run with an id.
type UnknownError struct {
	ID    string
	Store string // where it was looked for, for people
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("unknown run %q: there is no such run in %s", e.ID, e.Store)
}

// describePlace returns where the store is, in a form for people.
func (a *Archive) describePlace() string {
	at, err := stores.Parse(a.url, a.dirs)
	if err != nil {
		return stores.HidePassword(a.url)
	}
	return a.dirs.ShortPath(at.Place())
}

// maxNamedRuns is the largest number of runs that an error names.
const maxNamedRuns = 5

// findMatchingRuns returns the runs whose id, or whose thread's name, begins with id; if one
// is equal to id, only that one.
func (s *Store) findMatchingRuns(ctx context.Context, id string) (found []runRef, err error) {
	for t, err := range s.Threads(ctx, id) {
		if err != nil {
			return nil, err
		}
		if !isRunThread(t.Name) {
			continue
		}
		_, _, kept := SessionOf(t.Name)
		if t.Name == id {
			return []runRef{{thread: id, run: id}}, nil
		}
		if !kept || strings.HasPrefix(id, sessionPrefix) {
			found = append(found, runRef{thread: t.Name, run: t.Name})
		}
	}
	if strings.HasPrefix(id, sessionPrefix) {
		return found, nil
	}
	var sessions []string
	for t, err := range s.Threads(ctx, sessionPrefix) {
		if err != nil {
			return nil, err
		}
		sessions = append(sessions, t.Name)
		if d, err := history.Describe(t); err != nil || d.Run != id {
			continue
		}
		// it is a newest turn, unless a branch was forked after it: the other sessions need not be read
		turns, err := s.listTurns(ctx, t.Name)
		if err == nil && len(turns) > 0 && turns[0].run == id && !turns[0].copied {
			return turns[:1], nil
		}
	}
	for _, thread := range sessions {
		turns, err := s.listTurns(ctx, thread)
		if err != nil && !IsDamage(err) { // the turns after the damage can be named, and so can the other runs
			return nil, err
		}
		for _, turn := range turns {
			if turn.run == id && !turn.copied {
				return []runRef{turn}, nil
			}
			if strings.HasPrefix(turn.run, id) {
				found = append(found, turn)
			}
		}
	}
	return dropCopies(found, id), nil
}

// dropCopies leaves out the copies of runs in branches whose original is there, and all but the run with an id if that
// is there.
func dropCopies(found []runRef, id string) []runRef {
	var list []runRef
	for _, f := range found {
		at := slices.IndexFunc(list, func(o runRef) bool { return o.run == f.run })
		switch {
		case at < 0:
			list = append(list, f)
		case !f.copied:
			list[at] = f
		}
	}
	if at := slices.IndexFunc(list, func(f runRef) bool { return f.run == id }); at >= 0 {
		return list[at : at+1]
	}
	return list
}

// listTurns returns the runs of a session that are still in its journal, newest first. With an error it returns those
// that it could read.
func (s *Store) listTurns(ctx context.Context, thread string) (list []runRef, err error) {
	last := int64(0)
	for e, err := range history.Entries(ctx, s, thread) {
		if err != nil {
			return list, err
		}
		if e.Kind == journal.KindStart || e.Kind == journal.KindFork {
			list = append(list, runRef{thread: thread, run: e.What, first: e.Seq, last: last, copied: e.Kind == journal.KindFork})
			last = e.Seq - 1
		}
	}
	return list, nil
}

// LocateRun returns the thread of a run and its last record: 0 if that is the newest one of the thread.
func (a *Archive) LocateRun(ctx context.Context, id string) (*Store, journal.Point, error) {
	st, found, err := a.locateRun(ctx, id)
	return st, journal.Point{Thread: found.thread, Seq: found.last}, err
}
