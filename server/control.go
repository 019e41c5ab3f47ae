package server

import (
	"context"
	"encoding/json"
	"slices"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/app"
	"raddle.dev/internal/failure"
)

// AnswerRequest has answers to open questions of a run.
type AnswerRequest struct {
	Run     string
	Answers []graph.Answer
	// Protocol says that the answers come over a protocol: they may allow a call once, and neither for longer nor to
	// run files that the user has not trusted.
	Protocol bool
}

// AnswerRun checks answers, records them, continues the run, and returns the questions that are still open. If one
// of the answers does not fit, none is recorded. A run that still works in other places is answered when it waits: until then, or until
// ctx ends, AnswerRun waits too.
func (s *Service) AnswerRun(ctx context.Context, req AnswerRequest) (open []graph.Question, err error) {
	if err := s.RequireScope(ctx, ScopeAnswer); err != nil {
		return nil, err
	}
	if len(req.Answers) == 0 {
		return nil, failure.NewUsage("", "there is no answer")
	}
	run, err := s.takeRun(ctx, req.Run)
	if err != nil {
		return nil, err
	}
	err = func() error {
		if req.Protocol {
			if err := checkProtocolAnswers(run.Questions, req.Answers); err != nil {
				return err
			}
		}
		return run.CheckAnswers(ctx, req.Answers...)
	}()
	if err != nil {
		run.Close()
		return nil, err
	}
	open = slices.DeleteFunc(slices.Clone(run.Questions), func(q graph.Question) bool {
		return slices.ContainsFunc(req.Answers, func(a graph.Answer) bool { return a.ID == q.ID || a.ID == "" })
	})
	return open, s.launchRun(ctx, launch{run: run, answers: req.Answers})
}

// takeRun prepares to continue a run. If this service drives it, takeRun waits until it does not.
func (s *Service) takeRun(ctx context.Context, id string) (*app.Run, error) {
	if s.IsDraining() {
		return nil, errDraining
	}
	detail, err := s.findRun(ctx, id)
	if err != nil {
		return nil, err
	}
	for d := s.findDrive(detail.Run); d != nil; d = s.findDrive(detail.Run) {
		select {
		case <-d.done:
		case <-ctx.Done():
			return nil, failure.NewStale("try again when it waits", "run %s is still working", detail.Run)
		}
	}
	return s.process.ResumeRun(ctx, detail.Run, app.ResumeOptions{})
}

// checkProtocolAnswers returns an error for answers that would allow more than one call.
func checkProtocolAnswers(open []graph.Question, answers []graph.Answer) error {
	for _, a := range answers {
		i := slices.IndexFunc(open, func(q graph.Question) bool { return q.ID == a.ID || a.ID == "" })
		if i < 0 || a.Refused != "" {
			continue // CheckAnswers reports an unknown question
		}
		choice := choiceOf(a.Value)
		switch q := open[i]; {
		case q.Kind == flow.KindTrust && !slices.Contains([]string{"no", "false"}, choice),
			q.Kind == agent.KindPermission && !slices.Contains([]string{"once", "no", "edit", "true", "false", "yes"}, choice):
			return &ProtocolAnswerError{Question: q}
		}
	}
	return nil
}

// choiceOf returns what an answer to a question about permission chooses.
func choiceOf(value any) string {
	switch v := value.(type) {
	case bool:
		return map[bool]string{true: "true", false: "false"}[v]
	case string:
		var object agent.PermissionAnswer
		if json.Unmarshal([]byte(v), &object) == nil && object.Choice != "" {
			return object.Choice
		}
		return v
	}
	var object agent.PermissionAnswer
	if text, err := json.Marshal(value); err == nil && json.Unmarshal(text, &object) == nil {
		return object.Choice
	}
	return ""
}

// ProtocolAnswerError reports an answer that cannot be given over a protocol.
type ProtocolAnswerError struct {
	Question graph.Question
}

func (e *ProtocolAnswerError) Error() string {
	return "this answer cannot be given over a protocol: it would allow more than one call; answer with raddle inbox, or through the API"
}

// ResumeRun continues a run that was paused or stopped, has failed, or whose process was killed.
func (s *Service) ResumeRun(ctx context.Context, id string) error {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return err
	}
	run, err := s.takeRun(ctx, id)
	if err != nil {
		return err
	}
	return s.launchRun(ctx, launch{run: run})
}

// PauseRun stops a run after its current step.
func (s *Service) PauseRun(ctx context.Context, id string) error {
	return s.stopRun(ctx, id, (*drive).requestPause)
}

// InterruptRun ends the current turn of an agent at once: the text so far becomes its reply. A graph is stopped at once
// and can be continued.
func (s *Service) InterruptRun(ctx context.Context, id string) error {
	return s.stopRun(ctx, id, (*drive).requestInterrupt)
}

// stopRun stops a run that this service drives, or removes it from the queue.
func (s *Service) stopRun(ctx context.Context, id string, stop func(*drive)) error {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return err
	}
	detail, err := s.findRun(ctx, id)
	if err != nil {
		return err
	}
	if d := s.findDrive(detail.Run); d != nil {
		stop(d)
		return nil
	}
	if s.dequeueRun(detail.Run) {
		return nil
	}
	return failure.NewStale("", "run %s is not driven by this server: %s", detail.Run, detail.Status)
}

// dequeueRun takes a run out of the queue and reports whether it was there.
func (s *Service) dequeueRun(run string) bool {
	s.mu.Lock()
	n := len(s.waiting)
	s.waiting = slices.DeleteFunc(s.waiting, func(id string) bool { return id == run })
	found := len(s.waiting) < n
	s.mu.Unlock()
	if found {
		s.files.removeMark(run)
		s.feeds.noteStopped(run)
	}
	return found
}

// CancelRun ends a run permanently, even while it works.
func (s *Service) CancelRun(ctx context.Context, id string) error {
	if err := s.RequireScope(ctx, ScopeStart); err != nil {
		return err
	}
	detail, err := s.findRun(ctx, id)
	if err != nil {
		return err
	}
	s.dequeueRun(detail.Run)
	for d := s.findDrive(detail.Run); d != nil; d = s.findDrive(detail.Run) {
		d.cancel()
		select {
		case <-d.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	_, err = s.process.Runs.CancelRun(ctx, detail.Run)
	s.feeds.noteStopped(detail.Run)
	return err
}
