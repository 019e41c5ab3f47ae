// Package mcp offers agents as tools of the Model Context Protocol: over stdin and stdout, or as a handler for
// streamable HTTP. Each agent of the catalogue is a tool. A call starts a run, its progress is notified, and cancelling
// the call cancels the run. A question of the run becomes an elicitation if the client can elicit. Otherwise the result
// names the run and its questions, and the tool raddle_answer continues it.
//
// The package translates only: [raddle.dev/server.Service] starts, drives and answers runs.
package mcp
