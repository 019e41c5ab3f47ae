// Package acp lets editors talk with an agent over the Agent Client Protocol, on stdin and stdout. A session of the
// editor is a session of the agent, and a prompt is a run in it: its text, reasoning, calls and todo list are sent
// while it works, changes of files as diffs. A call that needs permission is asked in the editor, and can be allowed
// once. Every other question ends the turn with its text, and the next prompt is the answer.
//
// The package translates only: [raddle.dev/server.Service] starts, drives and answers runs.
package acp
