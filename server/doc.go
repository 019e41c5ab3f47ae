// Package server runs agents for programs, browsers and editors. Its [Service] starts, drives, answers and reads the
// runs of a store, many at the same time; the packages below it translate that to protocols. A run that is started here
// can be answered from a terminal, and the reverse: everything that matters is in the run's journal.
//
//	s, err := server.New(process, server.Options{})
//	run, err := s.StartRun(ctx, server.StartRequest{Agent: "triage", Prompt: "The login page is blank"})
//	sub, err := s.Subscribe(ctx, run, server.SubscribeOptions{UntilQuestion: true})
//	for ev, err := range sub.Events() { … }
//	given, err := s.AnswerRun(ctx, server.AnswerRequest{Run: run, Answers: answers})
//
// A [Service] drives no more than a number of runs at once. Others wait in a queue, with their start recorded. Which
// runs it drives or has in its queue is in files of the state directory: a service that starts resumes those of one
// that was killed.
package server
