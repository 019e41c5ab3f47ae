// Package cli is raddle's command line: commands, questions, reports and exit
// codes. What it shows is derived from one event sequence; internal/process/app does
// the work, and internal/base/term draws.
//
// Standard output carries the result of a command and nothing else. Narration
// and questions go to standard error.
//
// Each command, or group of small ones, has a file cmd_….go with its options, its flags and a function run… that gets
// the environment. In addition, drive.go holds the loop that works on a run until it ends or parks, watch.go shows its
// progress, report.go reports its result, ask.go answers its questions, start.go asks for what it needs before, and
// exit.go defines the exit codes.
package cli
