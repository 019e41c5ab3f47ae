// Package prompting makes the prompt of a command: of its words, of what comes through a pipe or a file on standard
// input, and of the files that its flags name.
package prompting
