// Package chat is the conversation on a terminal: a person types messages and commands, and an agent answers. Each
// message is a run in the thread of the conversation, so that nothing is lost if the terminal dies. What shows a run,
// and what asks its questions, comes from the command line, so that raddle run and raddle chat look the same.
package chat
