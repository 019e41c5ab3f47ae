package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"raddle.dev/agent"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/internal/report/overview"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/server"
)

// maxWait is how long a request may wait for a run.
const maxWait = 10 * time.Minute

// RunPath is the parameter of operations on a run.
type RunPath struct {
	ID string `path:"id" doc:"id of the run, or a unique prefix of it; last is the newest run"`
}

// Answer answers a question.
type Answer struct {
	ID      string `json:"id,omitempty" doc:"id of the question; it may be left out if only one is open"`
	Value   any    `json:"value,omitempty" doc:"the answer"`
	Refused string `json:"refused,omitempty" doc:"there will be no answer, and why"`
}

func toAnswers(list []Answer) (answers []graph.Answer) {
	for _, a := range list {
		answers = append(answers, graph.Answer{ID: a.ID, Value: a.Value, Refused: a.Refused})
	}
	return answers
}

// StartBody says what to run.
type StartBody struct {
	Agent     string            `json:"agent" minLength:"1" doc:"name of the agent"`
	Prompt    string            `json:"prompt,omitempty"`
	Variables map[string]string `json:"variables,omitempty" doc:"variables of the agent"`
	Session   string            `json:"session,omitempty" maxLength:"200" doc:"conversation to start or to continue"`
	Model     string            `json:"model,omitempty" doc:"replaces every model"`
	Headless  bool              `json:"headless,omitempty" doc:"no person will be asked"`
	Answers   []Answer          `json:"answers,omitempty" doc:"answers to questions that the run will ask"`
	Budget    *Budget           `json:"budget,omitempty" doc:"what the models of the run may use, in addition to what the agent allows"`
	Deadline  string            `json:"deadline,omitempty" maxLength:"40" doc:"after which the run is ended, also while it waits, such as 30m or 2d"`
	Files     []File            `json:"files,omitempty" maxItems:"100" doc:"files that are attached to the prompt: texts, and at most 20 pictures (PNG, JPEG, GIF, WebP) and PDFs with 10 MiB each and 20 MiB together; all at most 100 and 24 MiB together, or less if the server is configured so"`
}

// Budget limits what the models of a run may use. What is missing is not limited.
type Budget struct {
	Cost   float64 `json:"cost,omitempty" exclusiveMinimum:"0" doc:"US dollars"`
	Calls  int     `json:"calls,omitempty" minimum:"1" doc:"calls of models"`
	Tokens int     `json:"tokens,omitempty" minimum:"1" doc:"tokens of requests and replies"`
}

// limitsOf returns the limits of a request.
func limitsOf(b StartBody) (budget *agent.Limits, deadline time.Duration, err error) {
	if b.Budget != nil && *b.Budget != (Budget{}) {
		budget = &agent.Limits{Money: b.Budget.Cost, Calls: b.Budget.Calls, Tokens: b.Budget.Tokens}
	}
	if b.Deadline == "" {
		return budget, 0, nil
	}
	if deadline, err = spec.ParseSpan(b.Deadline); err != nil || deadline == 0 {
		p := newProblem(http.StatusUnprocessableEntity, "invalid-request", "validation failed")
		p.Errors = []Detail{{"body.deadline", "a duration such as 30m or 2d"}}
		return nil, 0, p
	}
	return budget, deadline, nil
}

// File is a file whose content comes with a request.
type File struct {
	Name string `json:"name" minLength:"1" maxLength:"255" doc:"how the prompt names it; nothing is read from a path"`
	Data string `json:"data" doc:"its content in base64; a text is UTF-8"`
	Type string `json:"type,omitempty" maxLength:"100" doc:"its media type, such as image/png; the content decides, and must not contradict it"`
}

// RunUsage is what a run took.
type RunUsage struct {
	overview.Usage
	Seconds float64 `json:"active_seconds" doc:"without waits for people"`
}

// Resolve refuses an idempotency key without any text: it would be no key, and each repetition of the request would
// start a run.
func (in *startInput) Resolve(c huma.Context) []error {
	r, _ := humago.Unwrap(c)
	if given := r.Header.Values("Idempotency-Key"); len(given) > 0 && strings.TrimSpace(in.Key) == "" {
		return []error{&huma.ErrorDetail{Location: "header.Idempotency-Key", Message: "the key is empty: send one, or leave the header out"}}
	}
	return nil
}

type startInput struct {
	Key    string `header:"Idempotency-Key" maxLength:"256" doc:"the same key gives the same run"`
	Accept string `header:"Accept" doc:"text/event-stream: the answer is the stream of the run's events, until it ends or asks"`
	Wait   string `query:"wait" example:"30s" doc:"wait so long for the run to end or to ask"`
	Body   StartBody

	RawBody []byte
}

// addRuns adds the operations that start, list, answer and end runs.
func (h *handler) addRuns() {
	start := h.describe(operation{http.MethodPost, "/runs", "start-run", "Start a run", server.ScopeStart, http.StatusCreated})
	state := h.api.OpenAPI().Components.Schemas.Schema(reflectType[server.RunState](), true, "")
	start.Responses = map[string]*huma.Response{"201": {Description: "Created", Content: map[string]*huma.MediaType{
		"application/json": {Schema: state}, "text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
	}}}
	start.MaxBodyBytes = MaxStartBody
	start.BodyReadTimeout = startTimeout
	huma.Register(h.api, start, h.startRun)
	h.addLists()
	h.addShow()
	add(h, operation{http.MethodGet, "/runs/{id}/usage", "show-usage", "Show how long a run worked and what it cost; this reads no other run, but not the runs of nodes with a queue", server.ScopeRead, 0}, func(ctx context.Context, in *RunPath) (*body[RunUsage], error) {
		v, err := h.process.Runs.ReadUsage(ctx, in.ID)
		if err != nil {
			return nil, err
		}
		calls, err := v.ReadModels(ctx)
		return &body[RunUsage]{RunUsage{overview.UsageOf(h.process, calls), v.Snapshot.Active.Seconds()}}, err
	})
	events := h.describe(operation{http.MethodGet, "/runs/{id}/events", "follow-run", "Follow the events of a run", server.ScopeRead, 0})
	events.Responses = map[string]*huma.Response{"200": {Description: "server-sent events: the lines of --output stream-json; the id is the position in the journal", Content: map[string]*huma.MediaType{
		"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
	}}}
	huma.Register(h.api, events, h.followRun)
	add(h, operation{http.MethodPost, "/runs/{id}/answers", "answer-run", "Answer open questions of a run, and continue it", server.ScopeAnswer, 0}, h.answerRun)
	say := operation{http.MethodPost, "/runs/{id}/messages", "send-message", "Say something to an agent while its turn works", server.ScopeStart, http.StatusNoContent}
	add(h, say, h.sendMessage)
	h.addControl("resume", "Continue a run that has stopped", (*server.Service).ResumeRun)
	h.addControl("pause", "Stop a run after its current step", (*server.Service).PauseRun)
	h.addControl("interrupt", "End the turn of an agent at once: the text so far becomes its reply", (*server.Service).InterruptRun)
	h.addControl("cancel", "End a run permanently", (*server.Service).CancelRun)
	add(h, operation{http.MethodDelete, "/runs/{id}", "remove-run", "Delete the journal of a run permanently", server.ScopeAdmin, http.StatusNoContent}, func(ctx context.Context, in *RunPath) (*nothing, error) {
		_, err := h.process.Runs.RemoveRun(ctx, in.ID)
		return nil, err
	})
	add(h, operation{http.MethodGet, "/questions", "list-questions", "List the open questions of all runs, oldest first", server.ScopeRead, 0}, h.listQuestions)
	h.addEvents()
}

// addShow adds the operation that shows a run.
func (h *handler) addShow() {
	add(h, operation{http.MethodGet, "/runs/{id}", "show-run", "Show a run, as raddle runs show --output json does", server.ScopeRead, 0}, h.showRun)
}

// MessageBody is what a person says to an agent.
type MessageBody struct {
	Text string `json:"text" minLength:"1" maxLength:"100000" doc:"what the agent gets with its next request to the model"`
	ID   string `json:"id,omitempty" maxLength:"100" pattern:"^[A-Za-z0-9._-]+$" doc:"what distinguishes it from the others to the run: sending it again does nothing"`
}

type messageInput struct {
	RunPath
	Body MessageBody
}

// sendMessage says something to the agent of a run.
func (h *handler) sendMessage(ctx context.Context, in *messageInput) (*nothing, error) {
	return nil, h.service.SendMessage(ctx, server.MessageRequest{Run: in.ID, Text: in.Body.Text, ID: in.Body.ID})
}

// EventBody is an event to send.
type EventBody struct {
	Name string          `json:"name" doc:"as event: of the nodes does that wait for it"`
	Data json.RawMessage `json:"data,omitempty" doc:"any JSON"`
	Key  string          `json:"key,omitempty" maxLength:"300" doc:"what distinguishes it from others with its name: sending it again does nothing"`
	Run  string          `json:"run,omitempty" doc:"the only run that may take it"`
	Keep string          `json:"keep,omitempty" example:"7d" doc:"how long it is kept for runs that wait later"`
}

type eventInput struct{ Body EventBody }

// eventsQuery selects events.
type eventsQuery struct {
	Name string `query:"name" doc:"only events with this name"`
}

// addEvents adds the operations of events that runs wait for.
func (h *handler) addEvents() {
	send := operation{http.MethodPost, "/events", "send-event", "Give an event to all runs that wait for it, or keep it for the first one that does", server.ScopeAnswer, 0}
	add(h, send, func(ctx context.Context, in *eventInput) (*body[trigger.EventSent], error) {
		req := app.EventRequest{Name: in.Body.Name, Data: in.Body.Data, Key: in.Body.Key, Run: in.Body.Run}
		if in.Body.Keep != "" {
			var err error
			if req.Life, err = config.ParseAge(in.Body.Keep); err != nil {
				return nil, failure.NewUsage("", "keep: %v", err)
			}
		}
		sent, err := h.service.SendEvent(ctx, req)
		return &body[trigger.EventSent]{sent}, err
	})
	list := operation{http.MethodGet, "/events", "list-events", "List the events that are kept, newest first", server.ScopeRead, 0}
	add(h, list, func(ctx context.Context, in *eventsQuery) (*body[[]mail.Event], error) {
		events, err := h.process.ListEvents(ctx, in.Name)
		return &body[[]mail.Event]{events}, err
	})
}

// addControl adds an operation that changes what a run does, and answers with its state.
func (h *handler) addControl(verb, summary string, do func(*server.Service, context.Context, string) error) {
	add(h, operation{http.MethodPost, "/runs/{id}/" + verb, verb + "-run", summary, server.ScopeStart, 0}, func(ctx context.Context, in *RunPath) (*body[*server.RunState], error) {
		if err := do(h.service, ctx, in.ID); err != nil {
			return nil, err
		}
		st, err := server.ReadChangedState(ctx, h.service, in.ID)
		return &body[*server.RunState]{st}, err
	})
}

// maxFiles is the size of the files that come with the start of a run, in bytes.
const maxFiles = 24 << 20

// maxFileCount is how many files come with the start of a run at most.
const maxFileCount = 100

// limitFiles returns how much the files of a run may have, in bytes: a state of the largest size holds them twice, and
// what else it needs.
func limitFiles(p *app.Process) int {
	if limit := p.Config.MaxState; limit > 0 {
		return min(maxFiles, limit/8*3)
	}
	return maxFiles
}

// StartPath is the path of requests that start runs, and MaxStartBody the size of their largest body: files are in
// base64.
const (
	StartPath    = prefix + "/runs"
	MaxStartBody = maxBody + maxFiles/3*4 + 4
)

// readFiles returns the files of a request. Without them, its body may be as large as any other; size is that of all of
// it.
func (h *handler) readFiles(b StartBody, size int) (files []attach.File, err error) {
	all := 0
	limit := limitFiles(h.process)
	for _, f := range b.Files { // before anything is decoded
		all += attach.DecodedSize(f.Data)
		size -= len(f.Data)
	}
	if all > limit || size > maxBody || len(b.Files) > maxFileCount {
		return nil, newProblem(http.StatusRequestEntityTooLarge, "too-large", fmt.Sprintf("a run has at most %d files with %d bytes together, and the rest of a request at most 4 MiB", maxFileCount, limit))
	}
	for i, f := range b.Files {
		file, err := attach.NewBase64(f.Name, f.Type, f.Data, limit)
		if errors.Is(err, attach.ErrEncoding) {
			p := newProblem(http.StatusUnprocessableEntity, "invalid-request", "validation failed")
			p.Errors = []Detail{{fmt.Sprintf("body.files[%d].data", i), attach.ErrEncoding.Error()}}
			return nil, p
		}
		if err != nil {
			return nil, h.problemOf(err)
		}
		files = append(files, file)
	}
	return files, nil
}

func (h *handler) startRun(ctx context.Context, in *startInput) (*huma.StreamResponse, error) {
	var wait time.Duration
	if in.Wait != "" {
		var err error
		if wait, err = time.ParseDuration(in.Wait); err != nil || wait < 0 || wait > maxWait {
			return nil, newProblem(http.StatusUnprocessableEntity, "invalid-request", "wait must be a duration such as 30s, and at most 10m")
		}
	}
	follows := strings.Contains(in.Accept, "text/event-stream")
	if follows || wait > 0 { // the answer has more than the run
		if err := server.RequireScopes(ctx, h.service, server.ScopeStart, server.ScopeRead); err != nil {
			return nil, h.problemOf(err)
		}
	}
	b := in.Body
	files, err := h.readFiles(b, len(in.RawBody))
	if err != nil {
		return nil, err
	}
	budget, deadline, err := limitsOf(b)
	if err != nil {
		return nil, err
	}
	run, err := h.service.StartRun(ctx, server.StartRequest{Agent: b.Agent, Prompt: b.Prompt, Variables: b.Variables, Session: b.Session, Model: b.Model,
		Headless: b.Headless, Answers: toAnswers(b.Answers), Files: files, Key: in.Key, Budget: budget, Deadline: deadline})
	if err != nil {
		return nil, h.problemOf(h.nameAgent(b.Agent, err))
	}
	server.NoteAhead(ctx, h.service, run, toAnswers(b.Answers))
	if follows {
		sub, err := h.service.Subscribe(ctx, run, server.SubscribeOptions{UntilQuestion: true})
		if err != nil {
			return nil, h.problemOf(err)
		}
		return h.streamEvents(run, sub, http.StatusCreated, stateOptions{}), nil
	}
	st, err := h.readStarted(ctx, run, wait)
	if err != nil {
		return nil, h.problemOf(err)
	}
	return &huma.StreamResponse{Body: func(c huma.Context) {
		c.SetHeader("Content-Type", "application/json")
		c.SetHeader("Location", prefix+"/runs/"+run)
		c.SetHeader("X-Raddle-Run", run)
		c.SetStatus(http.StatusCreated)
		_ = json.NewEncoder(c.BodyWriter()).Encode(st)
	}}, nil
}

// readStarted returns the state of a run when it has ended or asks, or after a time.
func (h *handler) readStarted(ctx context.Context, run string, wait time.Duration) (*server.RunState, error) {
	if wait == 0 {
		return server.ReadChangedState(ctx, h.service, run)
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	st, err := h.service.WaitRun(waiting, run)
	if err != nil && ctx.Err() == nil && errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return h.service.ReadState(ctx, run)
	}
	return st, err
}

func (h *handler) showRun(ctx context.Context, in *RunPath) (*body[*overview.Run], error) {
	v, err := h.process.Runs.ReadView(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	r, err := overview.DescribeRun(ctx, h.process, v)
	return &body[*overview.Run]{r}, err
}

type answerInput struct {
	RunPath
	Body struct {
		Answers []Answer `json:"answers" minItems:"1"`
	}
}

// Answered says what is still to be answered.
type Answered struct {
	Run  string           `json:"run"`
	At   int64            `json:"at" doc:"number of the record up to which everything is in the journal, the answers too"`
	Open []graph.Question `json:"open" nullable:"false" doc:"the questions that are still open"`
}

func (h *handler) answerRun(ctx context.Context, in *answerInput) (*body[Answered], error) {
	given, err := h.service.AnswerRun(ctx, server.AnswerRequest{Run: in.ID, Answers: toAnswers(in.Body.Answers)})
	return &body[Answered]{Answered{in.ID, given.At.At, append([]graph.Question{}, given.Open...)}}, err
}

// QuestionPage is a page of open questions.
type QuestionPage struct {
	Page[overview.Question]
	Damaged []runs.Info `json:"damaged,omitempty" nullable:"false" doc:"the runs whose journals cannot be read; they may have questions too"`
}

// A questionCursor is where a page of questions begins: after a run, and in the next one after some of its questions, if
// that is still the run with this thread.
type questionCursor struct {
	After runs.OpenPoint `json:"after"`
	In    string         `json:"in,omitempty"`
	Seen  int            `json:"seen,omitempty"`
}

func (h *handler) listQuestions(ctx context.Context, in *Paging) (*body[QuestionPage], error) {
	text, err := in.readCursor()
	var at questionCursor
	if err == nil && text != "" && json.Unmarshal([]byte(text), &at) != nil {
		err = newCursorProblem()
	}
	if err != nil {
		return nil, err
	}
	open, damaged, more, err := h.process.Runs.ListOpenRuns(ctx, at.After, in.Limit)
	if err != nil {
		return nil, err
	}
	page := QuestionPage{Page[overview.Question]{Items: []overview.Question{}}, damaged}
	for i := range open {
		list := overview.ListQuestions(&open[i])
		next := questionCursor{After: at.After, In: open[i].Point().Thread}
		if next.In == at.In {
			next.Seen = min(at.Seen, len(list))
		}
		taken := min(len(list)-next.Seen, in.Limit-len(page.Items))
		page.Items = append(page.Items, list[next.Seen:next.Seen+taken]...)
		if next.Seen += taken; next.Seen < len(list) {
			page.Next, err = next.encode()
			return &body[QuestionPage]{page}, err
		}
		at = questionCursor{After: open[i].Point()}
	}
	if more {
		page.Next, err = at.encode()
	}
	return &body[QuestionPage]{page}, err
}

// encode returns the cursor as clients get it.
func (c *questionCursor) encode() (string, error) {
	text, err := json.Marshal(c)
	return writeCursor(string(text)), err
}

type eventsInput struct {
	RunPath
	After   string `query:"after" doc:"id of the last event that you have seen, or the number of a record"`
	Last    string `header:"Last-Event-ID" doc:"as after; browsers send it when they connect again"`
	Until   string `query:"until" enum:"end,question" default:"end" doc:"question: the stream also ends when the run waits for an answer"`
	Values  bool   `query:"values" doc:"the event of a step of the run's own graph has the whole state after it, as data.values"`
	Updates bool   `query:"updates" doc:"the event of a step of the run's own graph has the values that it wrote, as data.updates"`
}

func (h *handler) followRun(ctx context.Context, in *eventsInput) (*huma.StreamResponse, error) {
	after := cmp.Or(in.Last, in.After)
	sub, err := h.service.Subscribe(ctx, in.ID, server.SubscribeOptions{After: after, UntilQuestion: in.Until == "question"})
	if err != nil {
		return nil, h.problemOf(err)
	}
	return h.streamEvents(in.ID, sub, http.StatusOK, stateOptions{in.Values, in.Updates}), nil
}

// streamEvents returns an answer that writes the events of a run.
func (h *handler) streamEvents(run string, sub *server.Subscription, status int, o stateOptions) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(c huma.Context) {
		r, w := humago.Unwrap(c)
		w.Header().Set("X-Raddle-Run", run)
		(&stream{h: h, run: run, options: o, w: w, control: http.NewResponseController(w)}).writeAll(r.Context(), sub, status)
	}}
}
