package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/attach"
)

// A message is what the person has sent.
type message struct {
	text    string        // with everything that is attached
	shown   string        // as it was typed
	files   []attach.File // those that are attached
	command bool          // it is a command, which waits for the end of a turn
	step    bool          // it is a step of a macro
	sent    string        // under which id the agent that works was given it; "": it waits for the end of the turn
}

// A turn is a message that an agent works on.
type turn struct {
	sending
	done      chan turnEnd
	interrupt func() // ends the turn at once
	cancel    func() // stops it, to be continued later
	stopped   bool   // the person has interrupted it
	failed    bool   // its run has failed before, and is only ended
}

// turnEnd is how a turn ended.
type turnEnd struct {
	result graph.Result
	err    error
}

// sending gives an agent what the person sends while its turn works. It is safe for concurrent use.
type sending struct {
	mu    sync.Mutex
	run   *app.Run // nil: it is not there yet
	early []agent.SentMessage
	taken map[string]bool // what the agent has taken up, by its id
}

// say gives the agent a message, and reports false if the turn ends before it could take it up.
func (s *sending) say(m agent.SentMessage) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		s.early = append(s.early, m)
		return true
	}
	return s.run.SayNow(m)
}

// begin names the run of the turn.
func (s *sending) begin(run *app.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
	for _, m := range s.early {
		run.SayNow(m)
	}
	s.early = nil
}

// unsay takes a message back, and reports false if the agent has it.
func (s *sending) unsay(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.run == nil {
		s.early = slices.DeleteFunc(s.early, func(m agent.SentMessage) bool { return m.ID == id })
		return true
	}
	return s.run.Unsay(id)
}

// noteTaken notes that the agent takes up a message, if an event says so.
func (s *sending) noteTaken(ev graph.Event) bool {
	sent, _ := ev.Body.(graph.ValueEmitted)
	m, ok := sent.Value.(agent.MessageTaken)
	if !ok {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = map[string]bool{}
	}
	s.taken[m.ID] = true
	return true
}

// hasTaken reports whether the agent has taken up a message.
func (s *sending) hasTaken(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken[id]
}

// sendQueued gives the agent that works what is queued, as far as it is only text.
func (s *Session) sendQueued() {
	if len(s.attached.texts)+len(s.attached.files) > 0 || s.talk.IsGraph() || s.turn.stopped {
		return
	}
	for i := range s.queue {
		m := &s.queue[i]
		if m.command || len(m.files) > 0 {
			return
		}
		if m.sent != "" {
			continue
		}
		id := graph.NewID(time.Now())
		if !s.turn.say(agent.SentMessage{ID: id, Text: m.text}) {
			return
		}
		m.sent = id
	}
}

// dropTaken removes from the queue what the agent has taken up.
func (s *Session) dropTaken() {
	if s.turn != nil {
		s.queue = slices.DeleteFunc(s.queue, func(m message) bool { return m.sent != "" && s.turn.hasTaken(m.sent) })
	}
}

// send sends a message. While a turn works, the agent gets it before its next request, or it is queued.
func (s *Session) send(ctx context.Context, m message) {
	if s.turn != nil {
		s.queue = append(s.queue, m)
		s.sendQueued()
		return
	}
	media := mediaOf(append(slices.Clone(s.attached.files), m.files...))
	if err := attach.CheckMedia(media); err != nil {
		s.Backend.ShowError(err)
		s.restore(m.shown)
		return
	}
	if s.echoed != m.shown {
		s.showMessage(m.shown)
	}
	s.echoed = ""
	for _, f := range m.files {
		s.say(attach.Mark + f.String())
	}
	s.usage.details.reset()
	if len(s.attached.texts) > 0 {
		m.text = strings.Join(append(s.attached.texts, m.text), "\n\n")
	}
	attached := attach.DescribeFiles(append(s.attached.files, m.files...))
	s.attached.texts = nil
	s.attached.files = nil
	s.startWork(ctx, s.talk.StartTurn, app.Request{Via: "terminal", Prompt: m.text, Media: media, Attached: attached})
}

// startWork drives the run that start prepares for a request with a prompt.
func (s *Session) startWork(ctx context.Context, start func(app.Request) (*app.Run, error), req app.Request) {
	req.Agent, req.Model, req.Variables, req.Mode = s.name, s.model, declaredValues(s.vars, s.agent), s.mode
	req.Budget, req.Deadline = s.Options.Budget, s.Options.Deadline
	if s.title == "" {
		s.title = firstWords(req.Prompt)
	}
	s.work(func() (*app.Run, error) {
		return s.Backend.Start(ctx, req, func(req app.Request) (*app.Run, error) {
			s.talking.Lock()
			defer s.talking.Unlock()
			return start(req)
		})
	})
}

// continueTurn continues a turn that was not finished when raddle ended.
func (s *Session) continueTurn(ctx context.Context) {
	run, status, err := s.talk.OpenTurn(ctx)
	switch {
	case err != nil:
		s.Backend.ShowError(err)
	case run != "":
		if status == graph.Waiting {
			s.say("A question of this conversation is still open.")
		} else {
			s.say("Continuing where the last reply stopped.")
		}
		s.resume(ctx, run, false)
	}
}

// resume continues a run. interrupted ends its turn at once.
func (s *Session) resume(ctx context.Context, run string, interrupted bool) {
	s.work(func() (*app.Run, error) { return s.Backend.Resume(ctx, run, s.mode) })
	if interrupted {
		s.turn.stopped = true
		s.turn.interrupt()
	}
}

// work drives the run that open returns.
func (s *Session) work(open func() (*app.Run, error)) {
	interrupt := make(chan struct{})
	cancel := make(chan struct{})
	t := &turn{done: make(chan turnEnd, 1)}
	t.interrupt = sync.OnceFunc(func() { close(interrupt) })
	t.cancel = sync.OnceFunc(func() { close(cancel) })
	s.turn = t
	go func() {
		run, err := open()
		if err != nil {
			t.done <- turnEnd{err: err}
			return
		}
		defer run.Close()
		t.begin(run)
		handle := func(ev graph.Event) {
			if t.noteTaken(ev) {
				s.usage.notifyChange()
			}
			s.usage.handleEvent(ev)
		}
		res, err := s.Backend.Drive(run, Drive{Interrupt: interrupt, Cancel: cancel, Event: handle})
		t.done <- turnEnd{res, err}
	}()
}

// interruptTurn stops the turn at once.
func (s *Session) interruptTurn() {
	if !s.turn.stopped {
		s.turn.stopped = true
		s.turn.interrupt()
		return
	}
	s.setNotice("Stopping. A tool or a script has not ended yet.")
}

// stopTurn stops the turn so that it can be continued later, and waits for it.
func (s *Session) stopTurn() {
	if s.turn == nil {
		return
	}
	s.turn.cancel()
	<-s.turn.done
	s.turn = nil
	s.say("The reply continues with: raddle -c")
}

// finishTurn shows how a turn ended, and starts the next one.
func (s *Session) finishTurn(ctx context.Context, end turnEnd) {
	s.dropTaken()
	for i := range s.queue {
		s.queue[i].sent = ""
	}
	t := s.turn
	s.turn = nil
	s.title = s.talk.Title()
	if s.talk.IsGraph() {
		s.last.run = end.result.Run
	}
	switch {
	case end.err != nil && !errors.Is(end.err, context.Canceled):
		s.Backend.ShowError(end.err)
		s.keepQueue()
		if !t.failed {
			s.endFailed(ctx)
		}
		return
	case t.failed:
		s.say("Your message is kept. To send it again: /retry")
		return
	case end.result.Status == graph.Waiting && !s.talk.IsGraph() && !s.leaving:
		s.resume(ctx, end.result.Run, true) // the person left a question open
		return
	case end.result.Status == graph.Waiting:
		s.noteWaiting(end.result)
	case end.result.Status == graph.Done && s.talk.IsGraph():
		s.last.output = flow.OutcomeOf(end.result).Output
		s.Backend.ShowReply(s.last.output)
	}
	if t.stopped {
		s.say("Stopped. What was said so far is kept.")
		s.keepQueue()
		return
	}
	s.runQueue(ctx)
}

// endFailed ends a turn whose run has failed, so that the next message can be sent. What was said is kept.
func (s *Session) endFailed(ctx context.Context) {
	if s.talk.IsGraph() || s.leaving {
		return
	}
	run, status, err := s.talk.OpenTurn(ctx)
	if err != nil || run == "" || status != graph.Failed {
		return
	}
	s.resume(ctx, run, true)
	s.turn.failed = true
}

// keepQueue puts the queued messages back into the editor: the person decides what to do with them. Without an editor
// they are left out, so that none is sent after another message.
func (s *Session) keepQueue() {
	if s.edit == nil {
		s.leaveOut(func(message) bool { return true })
	}
	if len(s.queue) == 0 {
		return
	}
	var texts []string
	for _, m := range s.queue {
		texts = append(texts, m.shown)
	}
	s.queue = nil
	if text := s.edit.Text(); text != "" {
		texts = append(texts, text)
	}
	s.edit.SetText(strings.Join(texts, "\n"))
}

// takeBack puts the newest queued message back into the editor, if there is one that the agent does not have.
func (s *Session) takeBack() {
	s.dropTaken()
	if len(s.queue) == 0 {
		return
	}
	last := s.queue[len(s.queue)-1]
	if last.sent != "" && s.turn != nil && !s.turn.unsay(last.sent) {
		return
	}
	s.queue = s.queue[:len(s.queue)-1]
	s.edit.SetText(last.shown)
}

// queuedLines returns the lines that show the queue.
func queuedLines(queue []message, cols int) []string {
	var lines []string
	for _, m := range queue {
		text := strings.Join(strings.Fields(m.shown), " ")
		lines = append(lines, term.PaintText(term.Dim, term.CutEnd("queued: "+term.CleanLine(text), cols)))
	}
	return lines
}
