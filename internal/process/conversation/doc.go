// Package conversation implements the conversations of a person with an agent, as the terminal and
// other user interfaces show them: their turns, their branches, and the way back.
//
// A conversation is a session of an agent. Each turn is a run in the thread of the session, so
// nothing needs to be saved: what a killed process has recorded is there. A branch is a fork of the
// journal, in a thread of its own next to the first one: session/AGENT/NAME, session/AGENT/NAME~2.
// All threads that were forked from each other, or that have the same name before the '~', are one
// conversation. Its current branch is the one whose newest record is the newest: every operation
// that changes the current branch writes a record, so the choice survives a kill.
//
//	c, err := conversation.Open(ctx, process, "coder", "")
//	defer c.Close()
//	run, err := c.StartTurn(app.Request{Prompt: "Where is the parser?"})
//	defer run.Close()
//	res, err := run.Drive(ctx, app.Driver{Interrupt: stop, Event: show})
//	err = c.Undo(ctx, 1)
//
// An agent that is a graph has no session: its conversation lives in this process only, and each
// turn is a run of its own.
//
// A Conversation is safe for use by one goroutine at a time.
package conversation
