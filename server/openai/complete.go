package openai

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/server"
)

// complete starts a run or answers one, and writes what it says until it ends or waits.
func (h *handler) complete(w http.ResponseWriter, r *http.Request) {
	req, err := readRequest(r)
	if err != nil {
		writeError(w, explainError(err))
		return
	}
	c := &completion{handler: h, request: req, created: time.Now().Unix()}
	if run := r.Header.Get(HeaderRun); run != "" {
		err = c.answerRun(r.Context(), run)
	} else {
		err = c.startRun(r.Context(), r.Header)
	}
	if c.run != "" {
		w.Header().Set(HeaderRun, c.run)
	}
	if err == nil {
		c.sub, err = h.service.Subscribe(r.Context(), c.run, server.SubscribeOptions{After: c.after, UntilQuestion: true})
	}
	switch {
	case err != nil:
		writeError(w, h.explainError(err))
	case req.Stream:
		c.stream(w, r)
	default:
		c.writeWhole(w, r)
	}
}

// A completion is the work on one request.
type completion struct {
	handler *handler
	request *request
	created int64
	run     string
	talks   bool   // the replies of its model are for the user; otherwise only its output is
	after   string // the last event before the request
	sub     *server.Subscription
}

// startRun starts a run.
func (c *completion) startRun(ctx context.Context, header http.Header) error {
	info, wrong := c.handler.findAgent(c.request.Model)
	if wrong != nil {
		return wrong
	}
	key, keyed := header["Idempotency-Key"]
	if keyed && strings.TrimSpace(strings.Join(key, "")) == "" {
		return newBadRequest("empty_idempotency_key", "", "the header Idempotency-Key is empty: send a key, or leave the header out")
	}
	// ScopeRead is for the answer, which is what the run says.
	if err := server.RequireScopes(ctx, c.handler.service, server.ScopeStart, server.ScopeRead); err != nil {
		return err
	}
	start := server.StartRequest{Via: "openai", Agent: c.request.Model, Prompt: c.request.formatPrompt(), Files: c.request.allFiles(), Variables: c.request.Raddle.Variables, Key: header.Get("Idempotency-Key")}
	if c.talks = !info.IsGraph(); c.talks {
		start.Session = noSession // the messages are the history, whatever the agent's file says
	}
	if session := header.Get(HeaderSession); session != "" {
		start.Session, start.Prompt, start.Files = session, c.request.lastText(), c.request.lastFiles()
	}
	var err error
	c.run, err = c.handler.service.StartRun(ctx, start)
	return err
}

// noSession is the name for a run without a session.
const noSession = "temp"

// answerRun gives the last message to a run that waits, as the answer to its first question that can be answered here.
func (c *completion) answerRun(ctx context.Context, run string) error {
	s := c.handler.service
	st, err := s.ReadState(ctx, run)
	if errors.As(err, new(*server.ScopeError)) || failure.IsUnavailable(err) {
		return err
	}
	if err != nil || st.Run != run {
		return &apiError{status: http.StatusNotFound, Type: typeRequest, Code: "run_not_found", Message: fmt.Sprintf("there is no run %q: %s must be the whole id of a run", run, HeaderRun)}
	}
	c.run = st.Run
	if model := c.request.Model; model != st.Agent {
		return newBadRequest("wrong_model", "model", fmt.Sprintf("run %s is of the agent %q, and not of %q", st.Run, st.Agent, model))
	}
	if len(st.Questions) == 0 {
		return newConflict("no_question", fmt.Sprintf("run %s has no open question: it is %s", st.Run, st.Status))
	}
	i := slices.IndexFunc(st.Questions, canAnswer)
	if i < 0 {
		return newConflict("permission_required", describeElsewhere(st.Run, st.Questions[0]))
	}
	if info, err := s.ReadAgent(st.Agent); err == nil {
		c.talks = !info.IsGraph()
	}
	if len(c.request.lastFiles()) > 0 {
		return newBadRequest("unsupported_content", "messages", "the answer to a question is a text: nothing can be attached to it")
	}
	c.after = st.Position()
	answer := server.AnswerRequest{Run: st.Run, Protocol: true, Answers: []graph.Answer{{ID: st.Questions[i].ID, Value: matchOption(st.Questions[i], c.request.lastText())}}}
	_, err = s.AnswerRun(ctx, answer)
	return err
}

// canAnswer reports whether a question can be answered over this protocol.
func canAnswer(q graph.Question) bool {
	return q.Kind != agent.KindPermission && q.Kind != flow.KindTrust
}

// matchOption returns the option that a text means, or the text.
func matchOption(q graph.Question, text string) string {
	text = strings.TrimSpace(text)
	for _, o := range q.Options {
		if strings.EqualFold(o, text) {
			return o
		}
	}
	return text
}

// describeElsewhere says where a question is answered that cannot be answered here.
func describeElsewhere(run string, q graph.Question) string {
	return fmt.Sprintf("This run waits for a decision that cannot be made in this chat:\n\n%s\n\nDecide it with `raddle resume %s`, or in the inbox: `raddle inbox`.",
		strings.TrimSpace(q.Prompt), run)
}

// describeQuestions returns the message that asks what a run waits for.
func describeQuestions(run string, open []graph.Question) string {
	i := slices.IndexFunc(open, canAnswer)
	if i < 0 {
		return describeElsewhere(run, open[0])
	}
	q := open[i]
	var b strings.Builder
	if q.Rejected != "" {
		b.WriteString(q.Rejected + "\n\n")
	}
	b.WriteString(strings.TrimSpace(q.Prompt))
	if len(q.Options) > 0 {
		b.WriteString("\n")
	}
	for _, o := range q.Options {
		b.WriteString("\n- " + o)
	}
	if q.Default != "" && !strings.Contains(q.Prompt, q.Default) {
		b.WriteString("\n\nProposed answer: " + q.Default)
	}
	return b.String()
}

// A requestEnd is how the work on a request has ended.
type requestEnd struct {
	finish string
	run    runInfo
}

// A runInfo is what the protocol has no words for.
type runInfo struct {
	Run       string           `json:"run"`
	Status    string           `json:"status"`
	Session   string           `json:"session,omitempty"`
	ExitCode  int              `json:"exit_code,omitempty"`
	Questions []graph.Question `json:"questions,omitempty"`
}

// follow passes the text of a run to send until it ends, stops or waits, and says how.
func (c *completion) follow(ctx context.Context, send func(delta)) (*requestEnd, *reply, error) {
	reply := &reply{talks: c.talks, send: send}
	for ev, err := range c.sub.Events() {
		if err != nil {
			return nil, reply, err
		}
		reply.handleEvent(&ev)
	}
	st, err := c.handler.service.ReadState(ctx, c.run)
	if err != nil {
		return nil, reply, err
	}
	out := &requestEnd{finish: reply.finishReason(), run: runInfo{Run: st.Run, Status: st.Status, Session: st.Session, ExitCode: st.ExitCode}}
	switch {
	case st.Status == graph.Done.String():
		reply.sendOutput(st.Output)
	case len(st.Questions) > 0 && !st.Final:
		out.run.Questions = st.Questions
		out.finish = finishStop
		reply.sendBlock(describeQuestions(st.Run, st.Questions))
	default:
		return nil, reply, c.explainStop(st)
	}
	return out, reply, nil
}

// explainStop returns the error of a run that has stopped without a result.
func (c *completion) explainStop(st *server.RunState) error {
	e := &apiError{status: http.StatusInternalServerError, Type: typeServer, Code: "run_failed", final: true,
		Message: fmt.Sprintf("run %s has failed: %s", st.Run, st.Error)}
	switch {
	case st.Status == graph.Abandoned.String():
		e.status = http.StatusConflict
		e.Code = "run_cancelled"
		e.Message = fmt.Sprintf("run %s was cancelled", st.Run)
	case c.handler.service.IsDraining():
		e.status = http.StatusServiceUnavailable
		e.Code = "draining"
		e.Message = fmt.Sprintf("the server is shutting down; run %s continues when it has been started again", st.Run)
	case st.Status != graph.Failed.String() && st.Error == "":
		e.status = http.StatusConflict
		e.Code = "run_stopped"
		e.Message = fmt.Sprintf("run %s is %s; continue it with: raddle resume %s", st.Run, st.Status, st.Run)
	}
	return e
}

// writeWhole answers with the whole text, when the run has ended or waits.
func (c *completion) writeWhole(w http.ResponseWriter, r *http.Request) {
	var text, reasoning strings.Builder
	out, reply, err := c.follow(r.Context(), func(d delta) {
		text.WriteString(d.Content)
		reasoning.WriteString(d.Reasoning)
	})
	if err != nil {
		writeError(w, c.handler.explainError(err)) // if the client has left, nothing is written, and the run continues
		return
	}
	type choice struct {
		Index   int `json:"index"`
		Message struct {
			Role      string  `json:"role"`
			Content   string  `json:"content"`
			Reasoning string  `json:"reasoning_content,omitempty"`
			Refusal   *string `json:"refusal"`
		} `json:"message"`
		Finish   string    `json:"finish_reason"`
		Logprobs *struct{} `json:"logprobs"`
	}
	answer := struct {
		head
		Choices []choice `json:"choices"`
		Usage   *usage   `json:"usage"`
		Raddle  runInfo  `json:"raddle"`
	}{head: c.head("chat.completion"), Choices: make([]choice, 1), Usage: newUsage(reply.usage), Raddle: out.run}
	only := &answer.Choices[0]
	only.Finish = out.finish
	only.Message.Role, only.Message.Content, only.Message.Reasoning = "assistant", text.String(), reasoning.String()
	writeJSON(w, http.StatusOK, answer)
}

// A head is what each answer and each chunk begins with.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
}

func (c *completion) head(object string) head {
	return head{ID: "chatcmpl-" + c.run, Object: object, Created: c.created, Model: c.request.Model}
}
