package runs

import (
	"context"
	"errors"
	"time"

	"raddle.dev/graph/journal"
)

// Session is a thread that the runs of one conversation append to.
type Session struct {
	Info
	Thread string
	First  int64 // number of the oldest record
	Began  time.Time
}

// StoreToRead returns the store if it exists, and nil otherwise: it creates nothing.
func (a *Archive) StoreToRead() (*Store, error) {
	st, err := a.openExistingStore()
	if errors.Is(err, errNoStore) {
		return nil, nil
	}
	return st, err
}

// ListSessions returns the sessions of an agent, or of all agents if agent is empty. It leaves out
// damaged ones.
func (a *Archive) ListSessions(ctx context.Context, agent string) ([]Session, error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return nil, err
	}
	prefix := sessionPrefix
	if agent != "" {
		prefix = NameSession(agent, "")
	}
	var threads []listedThread
	var asked []journal.Line
	for t, err := range st.Threads(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		listed, err := st.readThread(ctx, t)
		if err != nil {
			return nil, err
		}
		if listed.err == nil {
			threads = append(threads, listed)
			asked = append(asked, journal.Line{Thread: t.Name, Status: listed.info.Status.String()})
		}
	}
	jobs := &jobSet{store: st}
	if err := jobs.readJobs(ctx, asked); err != nil {
		return nil, err
	}
	var list []Session
	for _, t := range threads {
		i, err := st.describeListed(ctx, t.info, jobs)
		if err != nil {
			return nil, err
		}
		list = append(list, Session{Info: i, Thread: t.Name, First: t.First.Seq, Began: time.UnixMicro(t.First.Time)})
	}
	return list, nil
}
