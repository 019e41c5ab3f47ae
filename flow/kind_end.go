package flow

import (
	"fmt"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
)

// endNode ends the run with a result.
type endNode struct {
	output   spec.Template // lenient
	exitCode int           // of the process, minExitCode to maxExitCode; 0: the default of the run
}

// minExitCode and maxExitCode limit the exit codes of end nodes. No other
// result of a run has an exit code in this range.
const minExitCode, maxExitCode = 64, 113

var endKind = &kind{
	Kind: spec.Kind{
		Name:        "end",
		Doc:         "Ends the run with a result.",
		Optional:    []string{"output", "state_updates", "exit_code"},
		Routing:     spec.RouteEnd,
		NotInBranch: true,
		BranchFault: "which is an end node; map branches terminate via the map's collect mechanism, not via end nodes",
	},
	decode: func(m *spec.NodeFields) nodeBody {
		e := &endNode{output: m.AddLenient("output", m.ReadText("output", strictyaml.Defaulted))}
		if code := m.ReadOptionalCount("exit_code"); code != nil {
			if e.exitCode = *code; *code < minExitCode || *code > maxExitCode {
				m.AddFault(m.FindField("exit_code"), "exit_code", "invalid-value",
					fmt.Sprintf("invalid value: integer `%d`, expected an exit code from %d to %d", *code, minExitCode, maxExitCode))
			}
		}
		return e
	},
}

// Checks returns none: every end node is valid.
func (b *endNode) Checks() check.Checks { return nil }

// Advise reports nothing.
func (b *endNode) Advise(*check.Adviser, *spec.Node) {}

func (b *endNode) needs(*spec.Node) nodeNeeds { return nodeNeeds{} }

func (b *endNode) compile(_ *nodeCompiler, node *graph.Node) error {
	node.Quiet = true
	return nil
}

// run finishes the run with a rendered output.
func (b *endNode) run(nr *nodeRun) error {
	nr.applyUpdates("", nil)
	text, err := nr.renderLenient(b.output)
	if err != nil {
		return newChainError("the output of an end node", err)
	}
	nr.halt = Outcome{Output: text, ExitCode: b.exitCode}.toHalt()
	return nil
}
