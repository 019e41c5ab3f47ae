package api

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/graph"
	"raddle.dev/internal/report/runlist"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

type listInput struct {
	Paging
	Agent        string    `query:"agent" doc:"only runs of this agent"`
	Status       string    `query:"status" doc:"only runs with this status, or with one of several, separated by commas"`
	Since        time.Time `query:"since" doc:"only runs that started then or later"`
	Until        time.Time `query:"until" doc:"only runs that started then or earlier"`
	Session      string    `query:"session" doc:"only runs of sessions with this name"`
	Model        string    `query:"model" doc:"only runs to which this model has replied"`
	Via          string    `query:"via" example:"trigger" doc:"only runs of which via begins with this text"`
	LeastSeconds float64   `query:"min_seconds" minimum:"0" doc:"only runs that have worked so long"`
	LeastCost    float64   `query:"min_cost_usd" minimum:"0" doc:"only runs that have cost so much, in US dollars"`
	Text         string    `query:"text" doc:"only runs with this text in what the list shows of them: id, agent, session, title, questions, reason, and the beginning of the prompt and of the output"`
}

// RunPage is a page of runs.
type RunPage struct {
	Page[runlist.Item]
	Reached *time.Time `json:"reached,omitempty" doc:"the page is not full, because many runs were looked at that are not in it: the start of the last of them; the next page continues there"`
}

// statuses are those by which runs are listed: those of lists, and others that no listed run has, which clients send.
var statuses = append(runs.Statuses(), "halted", graph.NotStarted.String())

// addLists adds the operations that say something of many runs.
func (h *handler) addLists() {
	add(h, operation{http.MethodGet, "/runs", "list-runs", "List runs, newest first; this reads no journal", server.ScopeRead, 0}, h.listRuns)
	add(h, operation{http.MethodGet, "/overview", "show-overview", "Show what the runs of the last hours came to; this reads no journal", server.ScopeRead, 0}, h.showOverview)
}

func (h *handler) listRuns(ctx context.Context, in *listInput) (*body[RunPage], error) {
	before, err := in.readCursor()
	if err != nil {
		return nil, err
	}
	for status := range strings.SplitSeq(in.Status, ",") {
		if in.Status != "" && !slices.Contains(statuses, status) {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid-request", "there is no status "+strconv.Quote(status)+": it is one of "+strings.Join(statuses, ", "))
		}
	}
	found, err := runlist.ReadPage(ctx, h.process, runlist.Filter{
		Below:        before,
		Agent:        in.Agent,
		Status:       in.Status,
		Session:      in.Session,
		Model:        in.Model,
		Via:          in.Via,
		Text:         in.Text,
		Since:        in.Since,
		Until:        in.Until,
		LeastSeconds: in.LeastSeconds,
		LeastCost:    in.LeastCost,
	}, in.Limit)
	if err != nil {
		return nil, err
	}
	page := RunPage{Page: Page[runlist.Item]{Items: found.Items}}
	if found.Next != "" {
		page.Next = writeCursor(found.Next)
	}
	if !found.Reached.IsZero() {
		page.Reached = &found.Reached
	}
	return &body[RunPage]{page}, nil
}

type overviewInput struct {
	Hours int `query:"hours" default:"24" minimum:"1" maximum:"168" doc:"runs that started in so many last hours"`
}

func (h *handler) showOverview(ctx context.Context, in *overviewInput) (*body[runlist.Totals], error) {
	now := time.Now()
	t, err := runlist.ReadTotals(ctx, h.process, now.Add(-time.Duration(in.Hours)*time.Hour), now)
	return &body[runlist.Totals]{t}, err
}
