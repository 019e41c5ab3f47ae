package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"raddle.dev/draw"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/graph/journal"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/proving/replay"
	"raddle.dev/internal/report/crowd"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/report/story"
	"raddle.dev/internal/report/waterfall"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// Moment is one thing that happened in a run, in short.
type Moment struct {
	Record int64     `json:"record" doc:"number of its record in the journal"`
	Time   time.Time `json:"time"`
	Kind   string    `json:"kind" doc:"of the record: start, claim, call, step, task, intent, effect, failure, question, answer, return, edit, fork, snapshot, end, …"`
	Text   string    `json:"text" doc:"what happened, in words; empty: it says nothing to people"`
	Place  string    `json:"place,omitempty" doc:"the node of the picture that it belongs to: data-node in picture.svg"`
	Node   string    `json:"node,omitempty" doc:"path of the node or agent, with the numbers of branches"`
	From   []string  `json:"from,omitempty" doc:"of a step: places of the nodes that ran"`
	Next   []string  `json:"next,omitempty" doc:"places of the nodes that run next in the same graph"`
	Tasks  int       `json:"tasks,omitempty" doc:"number of tasks that run next, if there are more than nodes: a map has one for each item"`
	TookMS float64   `json:"took_ms,omitempty" doc:"of an effect; absent: the journal does not have it"`
	Tried  int       `json:"retries,omitempty" doc:"of an effect: how often it was tried again"`
	Effect string    `json:"effect,omitempty" enum:"reply,call,search,script,other" doc:"what an effect is"`
	Tokens int       `json:"tokens,omitempty" doc:"of a reply"`
	Cost   *float64  `json:"cost_usd,omitempty" doc:"of a reply, in US dollars; absent: the price is not known"`
	Status string    `json:"status,omitempty" doc:"of a call: as in tool_calls of the run; of an end: that of the run; failed: a node, an agent or an item has failed, also if the run continued"`
	Failed []string  `json:"failed,omitempty" doc:"places of what has failed with it: of nodes, agents, items of maps and tools, each as often as it failed"`
}

// MomentDetail is one thing that happened in a run, with all that its record says.
type MomentDetail struct {
	Moment
	FirstMS   float64         `json:"first_ms,omitempty" doc:"of an effect: from its start to the first part of its result"`
	WaitedMS  float64         `json:"retry_ms,omitempty" doc:"of an effect: the waits before it was tried again, in all"`
	Keys      []string        `json:"keys,omitempty" doc:"keys of the state that it writes"`
	Reply     *flow.Reply     `json:"reply,omitempty"`
	Asks      []llm.ToolCall  `json:"asks,omitempty" doc:"calls that a reply requests"`
	Call      *runs.ToolCall  `json:"call,omitempty"`
	Search    *flow.Search    `json:"search,omitempty"`
	Question  *graph.Question `json:"question,omitempty"`
	Answer    json.RawMessage `json:"answer,omitempty"`
	Refused   string          `json:"refused,omitempty"`
	Reasoning string          `json:"reasoning,omitempty" doc:"of the model before its reply, as far as its provider shows it"`
	Output    string          `json:"output,omitempty" doc:"what a script has written"`
	Reason    string          `json:"reason,omitempty" doc:"of an end: why the run stopped"`
}

// Timeline is what happened in a run, oldest first.
type Timeline struct {
	Run   string   `json:"run"`
	Items []Moment `json:"items" nullable:"false"`
}

type timelineInput struct {
	RunPath
	After int64 `query:"after" minimum:"0" doc:"only what came after the record with this number"`
}

type recordInput struct {
	RunPath
	Record int64 `path:"record" minimum:"1"`
}

type runPictureInput struct {
	RunPath
	Folding
	At    int64  `query:"at" minimum:"0" doc:"number of a record; 0: the newest"`
	Plain bool   `query:"plain" doc:"the picture of the agent, without what the run did"`
	Theme string `query:"theme" enum:"light,dark,auto" default:"auto"`
}

// Folding says which parts of a picture are folded.
type Folding struct {
	Fold   bool     `query:"fold" doc:"draw nodes that are alike as one, and close graphs inside of nodes if the picture is large; data-members of a node are then those that it is drawn for"`
	Open   []string `query:"open,explode" maxItems:"1000" doc:"with fold: data-node of nodes that stay open"`
	Closed []string `query:"closed,explode" maxItems:"1000" doc:"with fold: data-node of nodes whose graphs are closed"`
}

// foldPicture folds the structure of a picture if a client asks for it. A run that is drawn into the picture needs all
// of its nodes.
func (in *Folding) foldPicture(s graph.Structure, o *draw.Options) graph.Structure {
	if !in.Fold || o.Run != nil {
		return s
	}
	s, o.Members = crowd.FoldGraph(s, crowd.View{Open: in.Open, Closed: in.Closed})
	return s
}

// addTimeline adds the operations that show a run moment by moment.
func (h *handler) addTimeline() {
	add(h, operation{http.MethodGet, "/runs/{id}/timeline", "list-moments", "List what happened in a run, oldest first", server.ScopeRead, 0}, h.listMoments)
	add(h, operation{http.MethodGet, "/runs/{id}/waterfall", "show-waterfall", "Show when the parts of a run worked, and what it took so long for", server.ScopeRead, 0}, func(ctx context.Context, in *RunPath) (*body[*waterfall.Chart], error) {
		v, err := h.process.Runs.ReadView(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		var now time.Time
		if !v.Final && v.Status != graph.Failed.String() {
			now = time.Now()
		}
		return &body[*waterfall.Chart]{waterfall.New(v.Moments(), now)}, nil
	})
	add(h, operation{http.MethodGet, "/runs/{id}/records/{record}", "show-moment", "Show one thing that happened in a run", server.ScopeRead, 0}, h.showMoment)
	add(h, operation{http.MethodGet, "/runs/{id}/records/{record}/request", "show-request", "Compute what a run asked of a model for a recorded reply", server.ScopeRead, 0}, h.showRequest)
	add(h, operation{http.MethodGet, "/runs/{id}/picture.svg", "draw-run", "Draw the graph of a run, with what it did up to a record", server.ScopeRead, 0}, h.drawRun)
}

// A describer makes moments of the records of one run.
type describer struct {
	models *provider.Resolver
	words  *story.Describer
	places *story.Places
	at     map[string]string // places by path: finding one takes a search
}

// findPlace returns the place of a node in a frame, "" if the picture does not show it.
func (d *describer) findPlace(frame, node string) string {
	path := node
	if frame != "" {
		path = frame + "/" + node
	}
	place, known := d.at[path]
	if !known {
		place = d.places.Find(path)
		d.at[path] = place
	}
	return place
}

func (d *describer) findPlaces(frame string, nodes []string) (list []string) {
	for _, n := range nodes {
		if place := d.findPlace(frame, n); place != "" {
			list = append(list, place)
		}
	}
	return list
}

func (d *describer) describe(m *runs.Moment) Moment {
	out := Moment{Record: m.Seq, Time: m.Time, Kind: m.Kind.String(), Text: d.words.DescribeMoment(m), Place: d.places.FindMoment(m), Node: m.Node,
		From: d.findPlaces(m.Node, m.From), Next: d.findPlaces(m.Node, m.Next), TookMS: milliseconds(m.Took), Tried: m.Timing.Retries}
	if m.Tasks > len(m.Entry.Next) {
		out.Tasks = m.Tasks
	}
	switch m.Kind {
	case journal.KindEnd:
		out.Status = m.What
	case journal.KindEffect, journal.KindIntent, journal.KindFailure:
		out.Effect = "other"
	}
	switch {
	case m.Reply != nil:
		out.Effect = "reply"
		out.Tokens = m.Reply.Usage.Input + m.Reply.Usage.Output
		if cost, known := d.models.UsageCost(m.Reply.Model, m.Reply.Usage); known {
			out.Cost = &cost
		}
	case m.Call != nil:
		out.Effect = "call"
		out.Status = m.Call.Status
	case m.Search != nil:
		out.Effect = "search"
	case m.Effect == "script":
		out.Effect = "script"
	}
	if m.Failure != "" || len(m.FailedNodes)+len(m.FailedTasks) > 0 || m.Kind == journal.KindFailure {
		out.Status = graph.Failed.String()
	}
	out.Failed = d.places.FindFailed(m)
	return out
}

// milliseconds returns a duration as the API has it.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// describeStory returns what describes moments of a run.
func (h *handler) describeStory(ctx context.Context, d *runs.Detail, moments []runs.Moment) *describer {
	picture := overview.PictureOf(ctx, h.process, d, moments)
	return &describer{
		models: h.process.Models,
		words:  story.NewDescriber(moments, &d.Info),
		places: story.NewPlaces(&picture.Structure),
		at:     map[string]string{},
	}
}

func (h *handler) listMoments(ctx context.Context, in *timelineInput) (*body[Timeline], error) {
	v, err := h.process.Runs.ReadView(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	moments := v.Moments()
	words := h.describeStory(ctx, v.Detail, moments)
	out := Timeline{Run: in.ID, Items: []Moment{}}
	for i := range moments {
		if moments[i].Seq > in.After {
			out.Items = append(out.Items, words.describe(&moments[i]))
		}
	}
	return &body[Timeline]{out}, nil
}

// findMoment returns what happened at a record, and what describes it; nil: the record says nothing.
func (h *handler) findMoment(ctx context.Context, in *recordInput) (*runs.Moment, *describer, error) {
	if h.kept != nil {
		return pickMoment(h.kept.moments, in.Record), h.kept.words, nil
	}
	v, err := h.process.Runs.ReadView(ctx, in.ID)
	if err != nil {
		return nil, nil, err
	}
	moments := v.Moments()
	words := h.describeStory(ctx, v.Detail, moments)
	if m := pickMoment(moments, in.Record); m != nil {
		return m, words, nil
	}
	// the start of an effect, whose place what it returned later has taken
	until, err := h.process.Runs.ReadStory(ctx, v.Run, in.Record)
	return pickMoment(until, in.Record), words, err
}

// pickMoment returns the moment of a record; nil: there is none.
func pickMoment(moments []runs.Moment, record int64) *runs.Moment {
	at := slices.IndexFunc(moments, func(m runs.Moment) bool { return m.Seq == record })
	if at < 0 {
		return nil
	}
	return &moments[at]
}

func (h *handler) showMoment(ctx context.Context, in *recordInput) (*body[MomentDetail], error) {
	m, words, err := h.findMoment(ctx, in)
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, newProblem(http.StatusNotFound, "not-found", fmt.Sprintf("run %s has no record %d that says something", in.ID, in.Record))
	}
	out := MomentDetail{Moment: words.describe(m), Keys: m.Keys, Reply: m.Reply, Asks: m.Asks, Call: m.Call, Search: m.Search,
		FirstMS: milliseconds(m.Timing.First), WaitedMS: milliseconds(m.Timing.Waited), Question: m.Question, Answer: m.Answer, Refused: m.Refused, Reason: flow.PlainReason(m.Reason), Reasoning: m.Reasoning, Output: m.Output}
	return &body[MomentDetail]{out}, nil
}

// showRequest replays the run: a journal has replies, and not what was asked. Nothing is sent, and no script is run.
func (h *handler) showRequest(ctx context.Context, in *recordInput) (*body[*replay.Request], error) {
	asked, err := h.playRequests(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	r, err := asked.Find(in.Record)
	if err != nil {
		return nil, err
	}
	secrets := h.process.Tools.SecretSet()
	for _, text := range []*string{&r.Instructions, &r.Prompt, &r.Tools, &r.Settings} {
		*text = secrets.Text(*text)
	}
	return &body[*replay.Request]{r}, nil
}

// playRequests computes all that a run has asked of models.
func (h *handler) playRequests(ctx context.Context, id string) (*replay.Requests, error) {
	if h.kept != nil {
		return h.kept.playOnce(ctx, h)
	}
	file, err := h.collectRun(ctx, id)
	if err != nil {
		return nil, err
	}
	rec, err := replay.NewRecording(ctx, file)
	if err != nil {
		return nil, err
	}
	return replay.PlayRequests(ctx, replay.Job{Recording: rec, Environ: h.process.Environ()})
}

func (h *handler) drawRun(ctx context.Context, in *runPictureInput) (*raw, error) {
	v, err := h.process.Runs.ReadView(ctx, nameRecord(in.ID, in.At))
	if err != nil {
		return nil, err
	}
	moments := v.Moments()
	s := overview.PictureOf(ctx, h.process, v.Detail, moments).Structure
	o := draw.Options{Theme: draw.Theme(in.Theme)}
	if !in.Plain {
		story.AddRun(&o, &s, v.Detail, moments)
	}
	var b bytes.Buffer
	err = draw.Write(&b, "svg", in.foldPicture(s, &o), o)
	return &raw{"image/svg+xml", b.Bytes()}, err
}
