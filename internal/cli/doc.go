// Package cli is raddle's command line: commands, prompts, rendering and exit
// codes. What it shows comes out of one event sequence; what it does is done by
// internal/app.
//
// Standard output carries the result of a command and nothing else. Everything
// that tells how it came about, and every question, goes to standard error.
//
// There is one file for each command. Beside them, drive.go holds the loop that
// works on a run until it ends or parks, watch.go what is shown of it, report.go
// what is left of it, ask.go who answers its questions, and exit.go the meaning
// of the exit codes.
package cli
