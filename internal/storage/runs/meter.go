package runs

import (
	"context"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/history"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/base/histogram"
)

// A Meter counts how long what this process records took. It is safe for concurrent use. Its zero value has counted
// nothing.
type Meter struct {
	Appends histogram.Histogram // of records, to the store
	Models  histogram.Family    // replies, by the id of the model
	Tools   histogram.Family    // calls, by the name of the tool
	Queue   histogram.Histogram // jobs of runs, from when they were due until a worker took them
}

// StartMeter returns the meter of the store of the archive, which counts from its first call on.
func (a *Archive) StartMeter() (*Meter, error) {
	st, err := a.OpenStore()
	if err != nil {
		return nil, err
	}
	st.guard.mu.Lock()
	defer st.guard.mu.Unlock()
	if st.guard.meter == nil {
		st.guard.meter = &Meter{}
	}
	return st.guard.meter, nil
}

// addRecords counts what records that were appended say of effects.
func (m *Meter) addRecords(recs []journal.Record) {
	for i := range recs {
		r := &recs[i]
		if r.Kind != journal.KindEffect {
			continue
		}
		e, err := history.DecodeEntry(*r)
		if err != nil || e.Timing.Took <= 0 {
			continue
		}
		if name, ok := agent.ToolOfEffect(graph.ParseEffectID(e.ID).Name); ok {
			m.Tools.AddTime(name, e.Timing.Took)
		} else if flow.IsReply(e.ID) {
			if reply, err := flow.ReadReply(r.Data); err == nil {
				m.Models.AddTime(reply.Model, e.Timing.Took)
			}
		}
	}
}

// A Load says what of the runs of a store waits. Its cost does not grow with the number of runs, but for the queue: the
// store looks at each of its jobs.
type Load struct {
	Lag     time.Duration // for how long the job has waited for a worker that has waited longest; 0: none waits
	Wait    time.Duration // for how long the run has waited for an answer that has waited longest; 0: none does
	GivenUp int           // runs that no worker tries again
}

// ReadLoad returns the load of the store of the archive.
func (a *Archive) ReadLoad(ctx context.Context) (l Load, err error) {
	st, err := a.StoreToRead()
	if st == nil || err != nil {
		return l, err
	}
	if q := QueueOf(st); q != nil {
		m, err := q.MeasureJobs(ctx)
		if err != nil {
			return l, explainStoreError(ctx, err)
		}
		l.Lag = m.Lag
		for _, n := range m.ByStatus {
			l.GivenUp += n.GivenUp
		}
	}
	if index, ok := st.inside().(journal.Index); ok {
		first, err := index.ListWaiting(ctx, journal.WaitRange{Limit: 1})
		if err != nil {
			return l, explainStoreError(ctx, err)
		}
		if len(first) > 0 {
			l.Wait = max(0, time.Since(time.UnixMicro(first[0].Wait)))
		}
	}
	return l, nil
}
