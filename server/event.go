package server

import (
	"fmt"
	"strconv"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/internal/report/updates"
)

// An Event is one thing that happened in a run. Events with an ID are in the journal: every subscriber sees each of
// them once and in order. Those without one, such as the text of a reply as it comes, are only seen while they happen.
type Event struct {
	graph.Event

	// ID is the position in the journal, RECORD.N; "" for an event that is live only.
	ID string

	// Line is the event as one line of JSON, as --output stream-json writes it. It must not be changed.
	Line []byte
}

// A position is that of an event in a journal: its record, and its place among the events of that record, from 1.
type position struct {
	record int64
	place  int
}

func (p position) String() string {
	return strconv.FormatInt(p.record, 10) + "." + strconv.Itoa(p.place)
}

// isAfter reports whether p comes after q. The place 0 of q stands for all events of the record.
func (p position) isAfter(q position) bool {
	if p.record != q.record {
		return p.record > q.record
	}
	return q.place > 0 && p.place > q.place
}

// parsePosition reads the ID of an event, or the number of a record, which stands for all of its events.
func parsePosition(id string) (p position, err error) {
	if id == "" {
		return p, nil
	}
	record, place, more := strings.Cut(id, ".")
	p.record, err = strconv.ParseInt(record, 10, 64)
	if err == nil && more {
		p.place, err = strconv.Atoi(place)
	}
	if err != nil || p.record < 0 || p.place < 0 || more && p.place == 0 {
		return p, &PositionError{ID: id}
	}
	return p, nil
}

// PositionError reports a text that is not the id of an event.
type PositionError struct{ ID string }

// Error says what the id of an event must look like.
func (e *PositionError) Error() string {
	return fmt.Sprintf("%q is not the id of an event: it must be the number of a record, or RECORD.N", e.ID)
}

// nextPosition returns the position of an event that follows p.
func (p position) nextPosition(ev *graph.Event) position {
	if ev.Record != p.record {
		return position{ev.Record, 1}
	}
	return position{p.record, p.place + 1}
}

// encodeEvent returns an event with its line. Paths are those of conversations: the lead of a team has the path of its
// team, whether the event comes from a drive or from the journal.
func (s *Service) encodeEvent(ev graph.Event, run string, at position) Event {
	ev.Path = updates.PlainPath(ev.Path)
	ev.Run = run
	ev.Seq = ev.Record
	e := Event{Event: ev, Line: s.process.Tools.SecretSet().Bytes(updates.EncodeEvent(ev))}
	if at.place > 0 {
		e.ID = at.String()
	}
	return e
}
