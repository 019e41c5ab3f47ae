package overview

import (
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/storage/runs"
)

// Question is an open question of a run, as lists of the questions of all runs have it.
type Question struct {
	Run     string         `json:"run"`
	Session string         `json:"session,omitempty"`
	Agent   string         `json:"agent"`
	Status  string         `json:"status"`
	Since   time.Time      `json:"since"`          // when it was asked
	PID     int            `json:"pid,omitempty"`  // of the process that drives the run, if one does
	Host    string         `json:"host,omitempty"` // the machine of that process, if it is another one
	Asked   graph.Question `json:"question"`
	// Part says that the question is long: its prompt is cut, and its options and data are missing. The run has all of it.
	Part bool `json:"part,omitempty"`
}

// ListQuestions returns the open questions of a run, in the order in which they were asked.
func ListQuestions(r *runs.OpenRun) []Question {
	list := []Question{}
	for i := range r.Open {
		q := &r.Open[i]
		list = append(list, Question{
			Run:     r.Run,
			Session: r.Session,
			Agent:   r.Agent,
			Status:  r.Status,
			Since:   q.Since,
			PID:     r.PID,
			Host:    r.Host,
			Asked:   q.Question,
			Part:    q.Part,
		})
	}
	return list
}
