// Package editor is the place where a person types a message on a terminal: a text of several lines with a history,
// completion and folded pastes. It handles keys and returns lines; it reads and draws nothing itself.
package editor
