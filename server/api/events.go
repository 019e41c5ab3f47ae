package api

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/server"
)

// idleComment is the time without an event after which a comment keeps proxies from closing the connection.
const idleComment = 15 * time.Second

// writeTimeout is the time after which a client that does not read is gone. Only tests change it.
var writeTimeout = 30 * time.Second

func reflectType[T any]() reflect.Type { return reflect.TypeFor[T]() }

// A stream writes the events of a run as server-sent events.
type stream struct {
	h       *handler
	run     string
	options stateOptions
	w       http.ResponseWriter
	control *http.ResponseController
}

// An arrival is the next event of a subscription, or the error with which it ends.
type arrival struct {
	event server.Event
	err   error
}

// writeAll writes the events of a subscription, and last why there are no more.
func (s *stream) writeAll(ctx context.Context, sub *server.Subscription, status int) {
	h := s.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	s.w.WriteHeader(status)
	if s.control.Flush() != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival)
	go func() {
		defer close(arrivals)
		for ev, err := range sub.Events() {
			select {
			case arrivals <- arrival{ev, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	idle := time.NewTicker(idleComment)
	defer idle.Stop()
	for {
		var ok bool
		select {
		case a, more := <-arrivals:
			if !more || a.err != nil {
				s.writeEnd(ctx, a.err)
				return
			}
			idle.Reset(idleComment)
			if a.event.ID != "" {
				ok = s.write([]byte("id: "+a.event.ID+"\ndata: "), s.addState(ctx, &a.event), []byte("\n\n"))
			} else {
				ok = s.write([]byte("data: "), a.event.Line, []byte("\n\n"))
			}
		case <-idle.C:
			ok = s.write([]byte(": still here\n\n"))
		case <-ctx.Done():
			return
		}
		if !ok {
			return
		}
	}
}

// stateOptions say which values the events of steps carry.
type stateOptions struct{ values, updates bool }

// addState returns the line of an event, with the values that the client wants if it is a step of the run's own graph.
func (s *stream) addState(ctx context.Context, ev *server.Event) []byte {
	step, ok := ev.Body.(graph.StepCommitted)
	if !ok || ev.Path != "" || s.options == (stateOptions{}) {
		return ev.Line
	}
	d, err := s.h.process.Runs.ReadRunDetail(ctx, nameRecord(s.run, ev.Record))
	if err != nil { // the record was pruned in the meantime
		return ev.Line
	}
	var line map[string]json.RawMessage
	var data, state map[string]json.RawMessage
	text := s.h.process.Tools.SecretSet().Bytes(flow.StoredJSON(d.Snapshot.Values))
	if json.Unmarshal(ev.Line, &line) != nil || json.Unmarshal(line["data"], &data) != nil || json.Unmarshal(text, &state) != nil {
		return ev.Line
	}
	if s.options.values {
		data["values"] = text
	}
	if s.options.updates {
		maps.DeleteFunc(state, func(key string, _ json.RawMessage) bool { return !slices.Contains(step.Keys, key) })
		data["updates"], _ = json.Marshal(state)
	}
	line["data"], _ = json.Marshal(data)
	whole, _ := json.Marshal(line)
	return whole
}

// write writes parts of the stream, without a copy of them, and reports whether the client takes them.
func (s *stream) write(parts ...[]byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout))
	for _, part := range parts {
		if _, err := s.w.Write(part); err != nil {
			return false
		}
	}
	return s.control.Flush() == nil
}

// End is the data of the last event of a stream.
type End struct {
	Reason string `json:"reason"` // ended, slow, draining or error
	Status string `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
}

// writeEnd writes why the stream ends.
func (s *stream) writeEnd(ctx context.Context, err error) {
	end := End{Reason: "ended"}
	switch {
	case ctx.Err() != nil:
		return
	case errors.Is(err, server.ErrSlow):
		end.Reason, end.Detail = "slow", err.Error()
	case err != nil:
		p := s.h.problemOf(err)
		end.Reason = "error"
		end.Detail = p.Detail
		if p.Code == "draining" {
			end.Reason = p.Code
		}
	}
	if st, err := s.h.service.ReadState(ctx, s.run); err == nil {
		end.Status = st.Status
	}
	text, _ := json.Marshal(end)
	s.write([]byte("event: end\ndata: "), text, []byte("\n\n"))
}
