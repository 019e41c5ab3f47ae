package ending

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/graph"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

func TestChain(t *testing.T) {
	cause := errors.New("broken pipe: really")
	inner := fmt.Errorf("at the pump: %w", cause)
	tests := map[string]struct {
		err  error
		want []string
	}{
		"one":      {errors.New("a: b"), []string{"a: b"}},
		"wrapped":  {fmt.Errorf("outside: %w", inner), []string{"outside", "at the pump", "broken pipe: really"}},
		"reworded": {&Error{Err: fmt.Errorf("told otherwise (%w)", inner)}, []string{"told otherwise (at the pump: broken pipe: really)"}},
		"a graph":  {fmt.Errorf("Graph execution failed for agent 'x': at node 'n': %w", inner), []string{"Graph execution failed for agent 'x'", "at node 'n'", "at the pump", "broken pipe: really"}},
		"joined":   {fmt.Errorf("both: %w", errors.Join(inner)), []string{"both", "at the pump", "broken pipe: really"}},
	}
	for name, test := range tests {
		if diff := cmp.Diff(test.want, failure.Split(test.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for code, err := range map[int]error{
		0:   nil,
		1:   errors.New("x"),
		2:   BadUsage("", "x"),
		3:   &config.FileError{},
		4:   fmt.Errorf("x: %w", &llm.Error{Class: llm.Auth}),
		7:   &graph.StepError{Tasks: []*graph.NodeError{{Err: &graph.LimitError{Status: graph.VisitLimit, Path: "child/"}}}},
		8:   fmt.Errorf("x: %w", &failure.Error{Kind: failure.Stale}),
		70:  Silent{Code: 70},
		124: &graph.LimitError{Status: graph.TimedOut},
	} {
		if got := CodeOf(err); got != code {
			t.Errorf("exit code of %v: %d, want %d", err, got, code)
		}
	}
}
