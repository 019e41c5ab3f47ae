package agui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/llm"
	"raddle.dev/server"
)

// A call answers one request.
type call struct {
	*handler
	in        *input
	agent     *server.AgentInfo
	out       *stream
	thread    string // the name of the client's thread in ids and files
	announced bool   // RUN_STARTED was sent
}

// serve sends all events of the request.
func (c *call) serve(ctx context.Context) {
	var err error
	if len(c.in.Resume) > 0 {
		err = c.resume(ctx)
	} else {
		err = c.start(ctx)
	}
	if err == nil || ctx.Err() != nil {
		return
	}
	used, full := errors.AsType[*server.QuotaError](err)
	if full && !c.announced && c.out.refuse(used) {
		return
	}
	c.begin("")
	e := &event{Type: runError, Message: err.Error(), Code: "failed"}
	var rule *ruleError
	var fail *failure.Error
	switch {
	case errors.As(err, &rule):
		e.Code = rule.code
	case errors.As(err, new(*server.ScopeError)):
		e.Code = "forbidden"
	case full:
		e.Code = strings.ReplaceAll(used.Code, "-", "_")
	case errors.As(err, new(*server.DiskLowError)):
		e.Code = "disk-low"
	case failure.IsUnavailable(err):
		e.Code = "store-unavailable"
	case errors.Is(err, server.ErrSlow):
		e.Code = "too_slow"
	case errors.As(err, &fail):
		e.Code = string(fail.Kind)
		if fail.Next != "" {
			e.Message += ": " + fail.Next
		}
	}
	e.Message = server.HidePaths(e.Message, c.service)
	c.out.send(e)
}

// begin sends RUN_STARTED once.
func (c *call) begin(run string) {
	if c.announced {
		return
	}
	c.announced = true
	e := &event{Type: runStarted, ThreadID: c.in.ThreadID, RunID: c.in.RunID, ParentRunID: c.in.ParentRunID, ProtocolVersion: protocolVersion}
	if run != "" {
		e.Metadata = map[string]any{"raddle": map[string]string{"run": run}}
	}
	c.out.send(e)
}

// start starts a run and follows it. An input that comes again follows the run of the first one.
func (c *call) start(ctx context.Context) error {
	// ScopeRead is for the events: the client gets what the run does.
	if err := server.RequireScopes(ctx, c.service, server.ScopeStart, server.ScopeRead); err != nil {
		return err
	}
	note, err := c.threads.readNote(ctx, c.thread)
	if err != nil {
		return err
	}
	if note.Run != "" && note.Client != c.in.RunID {
		st, err := c.service.ReadState(ctx, note.Run)
		open := err == nil && !st.Final && len(st.Questions) > 0
		if said := c.in.lastMessage(); open && (said == "" || said == note.Message) {
			return c.attach(ctx, st, note)
		}
		if open {
			return newRuleError("open_interrupts", "run %s on this thread waits for answers: send them as resume", note.Run)
		}
	}
	if joined, err := c.join(ctx, note); joined || err != nil {
		return err
	}
	prompt, files, err := c.in.prompt("")
	if err != nil {
		return newRuleError("invalid_input", "%v", err)
	}
	variables, err := c.in.variables()
	if err != nil {
		return newRuleError("invalid_input", "%v", err)
	}
	req := server.StartRequest{Via: "agui", Agent: c.agent.Name, Prompt: prompt, Files: files, Variables: variables, Key: "agui:" + c.thread + ":" + c.in.RunID}
	if !c.agent.IsGraph() {
		req.Session = nameSession(c.in.ThreadID)
	}
	if req.Session != "" && note.Client != c.in.RunID {
		if err := server.EndFailedTurn(ctx, c.service, req.Agent, req.Session); err != nil {
			return err
		}
	}
	run, err := c.service.StartRun(ctx, req)
	if err != nil {
		return err
	}
	if err := c.threads.writeNote(ctx, c.thread, threadNote{Run: run, Client: c.in.RunID, Message: c.in.lastMessage()}); err != nil {
		return err
	}
	c.begin(run)
	return c.follow(ctx, c.newTranslator(run))
}

// join gives an agent that works on the thread what the client says, and follows the run from where the agent takes it
// up. It reports false if no agent works on the thread, or the turn ends before: then the input starts the next one.
func (c *call) join(ctx context.Context, note threadNote) (bool, error) {
	if note.Run == "" || c.agent.IsGraph() {
		return false, nil
	}
	t := c.newTranslator(note.Run)
	if note.Client != c.in.RunID {
		prompt, files, err := c.in.prompt(note.Message)
		if err != nil || len(files) > 0 || strings.TrimSpace(prompt) == "" {
			return false, nil
		}
		st, err := c.service.ReadState(ctx, note.Run)
		if err != nil || !runs.IsWorking(st.Status) {
			return false, nil
		}
		id := hashThread(c.thread, c.in.RunID) // a client that has left before the answer sends it again
		err = c.service.SendMessage(ctx, server.MessageRequest{Run: note.Run, Text: prompt, ID: id})
		if fail, ok := errors.AsType[*failure.Error](err); ok && fail.Kind == failure.Stale {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		note = threadNote{Run: note.Run, Client: c.in.RunID, Message: c.in.lastMessage(), Joined: &joinedNote{After: note.Message, Text: prompt}}
		if err := c.threads.writeNote(ctx, c.thread, note); err != nil {
			return true, err
		}
	}
	if note.Joined == nil {
		return false, nil
	}
	c.begin(note.Run)
	t.muted = true
	said := 0 // how many of the messages were there before
	for i := range t.messages {
		if t.messages[i].ID == note.Joined.After {
			said = i + 1
		}
	}
	t.joined = &joinedInput{text: note.Joined.Text, messages: t.messages[said:]}
	t.messages = t.messages[:said:said]
	return true, c.follow(ctx, t)
}

// attach gives a client that says nothing new, such as a page that was loaded again, the conversation and the open
// questions of the run that waits on its thread.
func (c *call) attach(ctx context.Context, st *server.RunState, note threadNote) error {
	c.begin(st.Run)
	t := c.newTranslator(st.Run)
	if len(t.messages) == 0 {
		var err error
		if t.messages, err = c.readEarlier(ctx, st.Run, note); err != nil {
			return err
		}
	}
	t.muted = true // what the run has done so far is in the snapshot
	if err := c.readEvents(ctx, t, func(*server.Event) error { return nil }); err != nil {
		return err
	}
	t.unmute()
	return c.follow(ctx, t)
}

// readEarlier returns the conversation up to the message of the user that a run works on.
func (c *call) readEarlier(ctx context.Context, run string, note threadNote) (list []message, err error) {
	d, err := c.service.Process().Runs.ReadRunDetail(ctx, run)
	if err != nil {
		return nil, err
	}
	entries, _ := agent.ReadEntries(d.Snapshot.Values, 0) // none for a graph
	last := -1
	for i, e := range entries {
		text := e.Message.Text()
		if e.Message.Role == llm.RoleUser {
			last = len(list)
		}
		if role := string(e.Message.Role); text != "" && (e.Message.Role == llm.RoleUser || e.Message.Role == llm.RoleAssistant) {
			list = append(list, message{ID: fmt.Sprintf("%s/earlier/%d", run, i), Role: role, Content: text})
		}
	}
	if list = list[:last+1]; len(list) == 0 && d.Record != nil && d.Record.Prompt != "" {
		list = []message{{Role: "user", Content: d.Record.Prompt}}
	}
	if n := len(list); n > 0 {
		list[n-1].ID = cmp.Or(note.Message, run+"/prompt")
	}
	return list, nil
}

// plainThread matches the names of threads that are also good names of sessions.
var plainThread = pattern.CompileLater(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// nameSession returns the session of an agent that a thread of a client is.
func nameSession(thread string) string {
	if plainThread().MatchString(thread) && !strings.HasPrefix(thread, "x-") {
		return "agui-" + thread
	}
	return "agui-x-" + hashThread("", thread)
}

// newTranslator returns the translator of a run.
func (c *call) newTranslator(run string) *translator {
	t := newTranslator(run, c.out.send)
	t.messages = c.in.shownMessages()
	if c.agent.IsGraph() {
		t.values = func(record string) json.RawMessage { return c.readValues(run, record) }
	}
	return t
}

// readValues returns the state of a graph at a record, or nil if it cannot be read.
func (c *call) readValues(run, record string) json.RawMessage {
	d, err := c.service.Process().Runs.ReadRunDetail(context.Background(), run+"@"+record)
	if err != nil {
		return nil
	}
	return storedValues(d)
}

// follow sends the events of a run until it ends or asks. A client that closes the connection stops the run: the turn
// of an agent ends with what it has said so far, and a graph is paused.
func (c *call) follow(ctx context.Context, t *translator) error {
	for {
		err := c.readEvents(ctx, t, func(*server.Event) error { return nil })
		if err != nil {
			return err
		}
		st, err := c.service.ReadState(ctx, t.run)
		if err != nil {
			return err
		}
		if c.finish(ctx, t, st) {
			return nil
		}
	}
}

// readEvents translates the events of a run until it ends, stops or asks. see is called after each.
func (c *call) readEvents(ctx context.Context, t *translator, see func(*server.Event) error) error {
	sub, err := c.service.Subscribe(ctx, t.run, server.SubscribeOptions{After: t.last, UntilQuestion: true})
	if err != nil {
		return err
	}
	for ev, err := range sub.Events() {
		if err != nil {
			if ctx.Err() != nil && !c.service.IsDraining() {
				_ = c.service.InterruptRun(context.WithoutCancel(ctx), t.run) // it may have ended
			}
			return err
		}
		t.translate(&ev)
		if err := see(&ev); err != nil {
			return err
		}
	}
	return nil
}

// finish sends how the run stopped. It reports whether it has.
func (c *call) finish(ctx context.Context, t *translator, st *server.RunState) bool {
	asks := len(st.Questions) > 0 && st.Status == graph.Waiting.String()
	paused := runs.NeedsResume(st.Status)
	if !asks && runs.IsWorking(st.Status) {
		return false
	}
	if t.joined != nil { // the turn was interrupted before
		t.joined = nil
		t.unmute()
	}
	t.endAll()
	if st.Final {
		c.threads.removeNote(ctx, c.thread, st.Run)
	}
	e := &event{Type: runFinished, ThreadID: c.in.ThreadID, RunID: c.in.RunID}
	if u := st.Usage; u.Input+u.Output > 0 {
		e.Usage = []tokenUsage{{Input: u.Input, Output: u.Output, Total: u.Input + u.Output, Cached: u.Cached, Reasoning: u.Reasoning}}
	}
	switch {
	case asks:
		e.Outcome = &runEnd{Type: "interrupt"}
		for _, q := range st.Questions {
			asked := t.tracker.FindQuestion(q.ID)
			e.Outcome.Interrupts = append(e.Outcome.Interrupts, describeQuestion(questionRef{st.Run, c.thread, recordAsked(asked), q.ID}, asked, &q))
		}
	case paused:
		e.Outcome = &runEnd{Type: "interrupt", Interrupts: []interrupt{{ID: questionRef{run: st.Run, thread: c.thread, record: recordOf(t.last)}.String(),
			Reason: reasonPaused, Message: "The run is paused. Resume it to continue."}}}
	case st.Status == graph.Done.String():
		c.sendOutput(t, st.Output)
		e.Outcome = &runEnd{Type: "success"}
		e.Result = st.Output
		if st.ExitCode != 0 {
			e.Metadata = map[string]any{"raddle": map[string]int{"exitCode": st.ExitCode}}
		}
	case st.Status == graph.Canceled.String() || st.Status == graph.Abandoned.String():
		e.Outcome = &runEnd{Type: "cancelled"}
	default:
		message := cmp.Or(st.Error, "the run ended: "+st.Status)
		e = &event{Type: runError, Message: message, Code: strings.ReplaceAll(st.Status, " ", "_"), Usage: e.Usage}
	}
	if e.Type == runFinished {
		t.sendWholeState()
		t.sendMessages()
	}
	c.out.send(e)
	return true
}

// sendOutput sends the output of a graph as a message, unless an agent has said the same last.
func (c *call) sendOutput(t *translator, output string) {
	if !c.agent.IsGraph() || strings.TrimSpace(output) == "" || strings.TrimSpace(output) == strings.TrimSpace(t.lastText) {
		return
	}
	t.addMessage(t.run+"/output", output)
}

// resume answers the open questions of a run and follows it. The same resume may come again: then the client gets the
// events since the answers once more.
func (c *call) resume(ctx context.Context) error {
	run, err := c.findInterrupted(ctx)
	if err != nil {
		return err
	}
	c.begin(run)
	t := c.newTranslator(run)
	t.muted = true
	r := &replay{call: c, t: t}
	if err := c.readEvents(ctx, t, func(ev *server.Event) error { return r.see(ctx, ev) }); err != nil {
		return err
	}
	if !t.muted { // the answers were given before
		st, err := c.service.ReadState(ctx, run)
		if err != nil {
			return err
		}
		if c.finish(ctx, t, st) {
			return nil
		}
		return c.follow(ctx, t)
	}
	if err := c.answer(ctx, t, run); err != nil {
		return err
	}
	t.unmute()
	return c.follow(ctx, t)
}

// findInterrupted returns the run whose interrupts the input answers.
func (c *call) findInterrupted(ctx context.Context) (run string, err error) {
	for _, r := range c.in.Resume {
		ref, ok := parseRef(r.InterruptID)
		if !ok || ref.thread != c.thread {
			return "", newRuleError("unknown_interrupt", "interrupt %q is not one of this thread", r.InterruptID)
		}
		if run != "" && ref.run != run {
			return "", newRuleError("unknown_interrupt", "the interrupts belong to different runs: %s and %s", run, ref.run)
		}
		run = ref.run
	}
	st, err := c.service.ReadState(ctx, run)
	if errors.As(err, new(*server.ScopeError)) || failure.IsUnavailable(err) {
		return "", err
	}
	if err != nil || st.Agent != c.agent.Name {
		return "", newRuleError("unknown_interrupt", "there is no run %s of this agent", run)
	}
	return st.Run, nil
}

// answer gives the answers of the input to a run that waits, or continues one that is paused.
func (c *call) answer(ctx context.Context, t *translator, run string) error {
	st, err := c.service.ReadState(ctx, run)
	if err != nil {
		return err
	}
	if ref, _ := parseRef(c.in.Resume[0].InterruptID); ref.question == "" && len(c.in.Resume) == 1 && len(st.Questions) == 0 {
		return c.answerPause(ctx, st)
	}
	ended := st.Final || len(st.Questions) == 0
	if ended && c.in.onlyCancels() {
		return nil // there is nothing left to cancel
	}
	if ended {
		return newRuleError("late_answer", "run %s does not wait for an answer: %s", run, st.Status)
	}
	answers, err := matchAnswers(st.Questions, &t.tracker, c.in.Resume)
	if err != nil {
		return err
	}
	_, err = c.service.AnswerRun(ctx, server.AnswerRequest{Run: run, Answers: answers, Protocol: true})
	if errors.As(err, new(*graph.AnswerError)) || errors.As(err, new(*server.ProtocolAnswerError)) {
		return newRuleError("invalid_answer", "%v", err)
	}
	return err
}

// answerPause continues or cancels a run that is paused. A run that works or has ended stays as it is.
func (c *call) answerPause(ctx context.Context, st *server.RunState) error {
	switch {
	case st.Final || runs.IsWorking(st.Status):
		return nil
	case c.in.Resume[0].Status == statusCancelled:
		return c.service.CancelRun(ctx, st.Run)
	}
	return c.service.ResumeRun(ctx, st.Run)
}

// A replay follows what a run has recorded until all answers of the input have been given.
type replay struct {
	*call
	t     *translator
	given int
}

// see notes an answer that was given before. When all were, the client gets the events from there on.
func (r *replay) see(ctx context.Context, ev *server.Event) error {
	answered, ok := ev.Body.(graph.QuestionAnswered)
	if !ok || !r.t.muted {
		return nil
	}
	for i := range r.in.Resume {
		ref, _ := parseRef(r.in.Resume[i].InterruptID)
		asked := r.t.tracker.FindQuestion(answered.ID)
		if asked == nil || ref.question != answered.ID || ref.record != recordAsked(asked) {
			continue
		}
		if err := r.compareAnswer(ctx, &r.in.Resume[i], asked.Question, recordOf(ev.ID)); err != nil {
			return err
		}
		if r.given++; r.given == len(r.in.Resume) {
			r.t.unmute()
		}
	}
	return nil
}

// compareAnswer returns an error if an answer is not the recorded one. A client may cancel what was answered elsewhere:
// it then learns how the run continued.
func (r *replay) compareAnswer(ctx context.Context, e *resumeEntry, q graph.Question, record string) error {
	if e.Status == statusCancelled {
		return nil
	}
	late := newRuleError("late_answer", "interrupt %q was answered before, with another answer", e.InterruptID)
	a, err := makeAnswer(&q, e)
	if err != nil {
		return late
	}
	c, err := r.readContent(ctx, record)
	if err != nil {
		return err
	}
	if a.Refused != "" || c.Refused != "" {
		if a.Refused == c.Refused {
			return nil
		}
		return late
	}
	b, err := json.Marshal(a.Value)
	if err != nil {
		return err
	}
	var was, is any
	if json.Unmarshal(c.Answer, &was) != nil || json.Unmarshal(b, &is) != nil || !reflect.DeepEqual(was, is) && !bytes.Equal(b, c.Answer) {
		return late
	}
	return nil
}
