package chat

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

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
}

// A turn is a message that an agent works on.
type turn struct {
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

// send sends a message, or queues it while a turn works.
func (s *Session) send(ctx context.Context, m message) {
	if s.turn != nil {
		s.queue = append(s.queue, m)
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
	s.startWork(ctx, s.talk.StartTurn, app.Request{Prompt: m.text, Media: media, Attached: attached})
}

// startWork drives the run that start prepares for a request with a prompt.
func (s *Session) startWork(ctx context.Context, start func(app.Request) (*app.Run, error), req app.Request) {
	req.Agent, req.Model, req.Variables, req.Mode = s.name, s.model, declaredValues(s.vars, s.agent), s.mode
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
		res, err := s.Backend.Drive(run, Drive{Interrupt: interrupt, Cancel: cancel, Event: s.usage.handleEvent})
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
	t := s.turn
	s.turn = nil
	s.title = s.talk.Title()
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
		s.output = flow.OutcomeOf(end.result).Output
		s.Backend.ShowReply(s.output)
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

// keepQueue puts the queued messages back into the editor: the person decides what to do with them.
func (s *Session) keepQueue() {
	if len(s.queue) == 0 || s.edit == nil {
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

// takeBack puts the newest queued message back into the editor, if there is one.
func (s *Session) takeBack() {
	if len(s.queue) == 0 {
		return
	}
	last := s.queue[len(s.queue)-1]
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
