// Package cli is raddle's command line: commands, prompts, rendering and exit
// codes. What it shows is derived from one event sequence; internal/app does
// the work.
//
// Standard output carries the result of a command and nothing else. Narration
// and questions go to standard error.
//
// There is one file for each command. In addition, drive.go holds the loop that
// works on a run until it ends or parks, watch.go shows its progress, report.go
// reports its result, ask.go answers its questions, and exit.go defines the
// exit codes.
package cli
