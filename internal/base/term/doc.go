// Package term separates raddle from the terminal.
//
// Output: models, tools, servers and file names are untrusted, and a terminal obeys what they contain: a reply can set the clipboard,
// clear the screen, or show text that is not what it is. A [Writer] is the only way to a terminal. It removes every
// control sequence, except those that raddle made itself with [PaintText] and [RewindRows]. These carry a random mark
// of this process, so that no text from outside can imitate them. A pipe or a file gets the bytes as they are, and
// colours if they are asked for.
//
// A [Screen] draws on standard error: finished lines above, and a block of live lines below them. An [Output] is the
// stream for results. What is drawn goes through one of them.
//
// Input: a [Keyboard] keeps what a person types during a run off the screen and out of the next question. A [Prompter]
// asks questions: with a form, or with numbered lines on a terminal that can do no more.
package term
