// Command raddle runs graph agents that never lose their place.
//
// Agents are directories with a graph.yaml: workflows of model calls, scripts,
// people and other agents. Every run is a journal, so a run that waits for
// somebody, or whose process was killed, goes on where it was:
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
//	10       raddle itself is at fault: a panic
//	124      the graph's timeout has passed
//	129, 130, 131, 143  stopped by a signal; what was recorded is kept
//	141      stopped because nobody read the output any more
package main

import (
	"os"

	"raddle.dev/internal/cli"
)

func main() {
	os.Exit(cli.Main(os.Args[1:]))
}
