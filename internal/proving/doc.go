// Package proving holds what proves agents: test cases and their runs, crash tests, replay, and coverage of graphs.
package proving
