package server

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/process/trigger"
	"raddle.dev/internal/storage/runs"
)

// AnswerRequest has answers to open questions of a run.
type AnswerRequest struct {
	Run     string
	Answers []graph.Answer
	// Protocol says that the answers come over a protocol: they may allow a call once, and neither for longer nor to
	// run files that the user has not trusted.
	Protocol bool
}

// Answered says what answers have led to.
type Answered struct {
	Open []graph.Question // those that are still open
	At   runs.Point       // everything up to there is in the journal, the answers too
}

// AnswerRun checks answers, records them with the name of the caller, continues the run, and returns the questions that
// are still open. If one of the answers does not fit, none is recorded. A run that works in other places is answered at
// once if it has asked; otherwise AnswerRun waits until it asks, or until ctx ends.
func (s *Service) AnswerRun(ctx context.Context, req AnswerRequest) (given Answered, err error) {
	if err := s.RequireScope(ctx, ScopeAnswer); err != nil {
		return given, err
	}
	if len(req.Answers) == 0 {
		return given, failure.NewUsage("", "there is no answer")
	}
	caller, _ := CallerOf(ctx)
	req.Answers = slices.Clone(req.Answers)
	for i := range req.Answers {
		req.Answers[i].By = caller.Name
	}
	detail, err := s.findRun(ctx, req.Run)
	if err != nil {
		return given, err
	}
	req.Run = detail.Run
	if given, err = s.answers.answerRun(ctx, req); err != nil {
		return Answered{}, runs.ExplainAnswered(ctx, s.process.Runs, req.Run, req.listQuestions(), err)
	}
	noteGrants(ctx, s, req.Run, detail.Snapshot.Questions, req.Answers)
	return given, nil
}

// answering gives answers to the runs of a service.
type answering struct {
	service *Service
	taken   keyedLock // one caller at a time continues a run with answers
}

// answerRun answers a run through its drive, or continues it with the answers.
func (a *answering) answerRun(ctx context.Context, req AnswerRequest) (given Answered, err error) {
	for {
		d := a.service.findDrive(req.Run)
		if d == nil {
			// of several callers, one continues the run and the others answer its drive
			taken, err := a.taken.lock(ctx, req.Run)
			if err != nil {
				return given, err
			}
			if a.service.findDrive(req.Run) == nil {
				defer taken()
				return a.answerWaiting(ctx, req)
			}
			taken()
			continue
		}
		given, err := a.answerDrive(ctx, d, req)
		if !errors.Is(err, graph.ErrNotDriven) {
			return given, err
		}
		select {
		case <-d.done:
		case <-time.After(pollInterval): // it may ask while its other branches work
		case <-ctx.Done():
			return given, failure.NewStale("try again when it waits", "run %s is still working", req.Run)
		}
	}
}

// answerDrive answers a run that works. The error is [graph.ErrNotDriven] if it waits, or has no open question.
func (a *answering) answerDrive(ctx context.Context, d *drive, req AnswerRequest) (given Answered, err error) {
	select {
	case <-d.receipt.done: // it has begun, or ended before
	case <-ctx.Done():
		return given, graph.ErrNotDriven
	}
	run := d.work.Load()
	if run == nil {
		return given, graph.ErrNotDriven
	}
	detail, err := a.service.findRun(ctx, req.Run)
	if err != nil {
		return given, err
	}
	if req.Protocol {
		if err := checkProtocolAnswers(detail.Snapshot.Questions, req.Answers); err != nil {
			return given, err
		}
	}
	given.Open, given.At, err = run.AnswerNow(req.Answers)
	if wrong, ok := errors.AsType[*graph.AnswerError](err); ok && len(wrong.Open) == 0 {
		// one without an id is for what the run asks next
		named := slices.DeleteFunc(req.listQuestions(), func(id string) bool { return id == "" })
		if explained := runs.ExplainAnswered(ctx, a.service.process.Runs, req.Run, named, err); !errors.As(explained, new(*runs.AnsweredError)) {
			return given, graph.ErrNotDriven
		}
	}
	if err == nil {
		a.service.feeds.requestLook(req.Run)
	}
	return given, err
}

// answerWaiting continues a run that no drive of this service works on.
func (a *answering) answerWaiting(ctx context.Context, req AnswerRequest) (given Answered, err error) {
	run, err := a.service.takeRun(ctx, req.Run)
	if is[*runs.BusyError](err) {
		return a.answerElsewhere(ctx, req)
	}
	if err != nil {
		return given, err
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
		return given, err
	}
	given.Open = run.ListOpenAfter(req.Answers)
	given.At, err = a.service.launchRun(ctx, launch{run: run, answers: req.Answers})
	return given, err
}

// answerElsewhere gives answers to the process that drives a run: a terminal, or another service.
func (a *answering) answerElsewhere(ctx context.Context, req AnswerRequest) (given Answered, err error) {
	detail, err := a.service.findRun(ctx, req.Run)
	if err != nil {
		return given, err
	}
	open := graph.ForPeople(detail.Snapshot.Questions)
	for i, answer := range req.Answers {
		if answer.ID == "" && len(open) == 1 {
			req.Answers[i].ID = open[0].ID
		}
	}
	if req.Protocol {
		if err := checkProtocolAnswers(detail.Snapshot.Questions, req.Answers); err != nil {
			return given, err
		}
	}
	handed, err := a.service.process.SendAnswers(ctx, req.Run, req.Answers)
	switch {
	case err != nil:
		return given, err
	case !handed: // it has just stopped
		return a.answerWaiting(ctx, req)
	}
	if detail, err = a.service.findRun(ctx, req.Run); err != nil {
		return given, err
	}
	a.service.feeds.requestLook(req.Run)
	return Answered{Open: detail.Snapshot.Questions, At: runs.Point{Run: req.Run, At: detail.Snapshot.Head}}, nil
}

// SendEvent gives an event to the runs that wait for it, and continues them, and fires triggers.
func (s *Service) SendEvent(ctx context.Context, req app.EventRequest) (trigger.EventSent, error) {
	if err := s.RequireScope(ctx, ScopeAnswer); err != nil {
		return trigger.EventSent{}, err
	}
	return trigger.SendEvent(ctx, s.process, req, func(ctx context.Context, run string, answers []graph.Answer) error {
		_, err := s.answers.answerRun(ctx, AnswerRequest{Run: run, Answers: answers})
		return err
	})
}

// MessageRequest is what a caller says to the agent of a run.
type MessageRequest struct {
	Run  string
	Text string
	ID   string // distinguishes it from the others to the run: sending it again does nothing; "": a new one
}

// SendMessage says something to the agent of a run that works, or that is to continue, in the name of the caller. When it
// returns, the message is stored and will reach the agent.
func (s *Service) SendMessage(ctx context.Context, req MessageRequest) error {
	detail, err := findRunFor(ctx, s, ScopeStart, req.Run)
	if err != nil {
		return err
	}
	caller, _ := CallerOf(ctx)
	return s.process.SendMessage(ctx, app.MessageRequest{
		Run:  detail.Run,
		Text: req.Text,
		By:   caller.Name,
		ID:   req.ID,
	})
}

// listQuestions returns the ids of the questions that a request answers.
func (req *AnswerRequest) listQuestions() (ids []string) {
	for _, a := range req.Answers {
		ids = append(ids, a.ID)
	}
	return ids
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

// Error says why the answer was refused, and how to give it.
func (e *ProtocolAnswerError) Error() string {
	return "this answer cannot be given over a protocol: it would allow more than one call; answer with raddle inbox, or through the API"
}
