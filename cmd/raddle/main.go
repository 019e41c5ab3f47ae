// Command raddle runs graph agents and records every step, so that a run can always continue.
//
// Agents are directories with a graph.yaml: workflows of model calls, scripts,
// people and other agents. Every run is a journal, so a run that waits for a
// person, or whose process was killed, continues from its last recorded result:
//
//	raddle run AGENT [PROMPT...]
//	raddle resume RUN [--answer TEXT]
//
// See raddle --help for all commands. The exit codes are part of the contract:
//
//	0        finished; an end node may set another code from 64 to 113
//	1        the run failed
//	2        bad usage or input
//	3        the configuration or the agent is invalid
//	4        a key is missing or was rejected
//	5        parked: the run waits for a person
//	7        a step, loop or turn limit was met
//	8        the run cannot be resumed as it is
//	10       internal error: raddle itself has panicked
//	124      the graph's timeout has passed
//	129, 130, 131, 143  stopped by a signal; what was recorded is saved
//	141      stopped because the output pipe was closed
package main

import (
	"os"

	"raddle.dev/internal/terminal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
