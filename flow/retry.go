package flow

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/llm"
)

// patienceOf returns retry_patience in the form that package agent uses.
func patienceOf(s strictyaml.Seconds) time.Duration {
	if s == 0 {
		return -1
	}
	return s.Duration()
}

// retryPatience returns how long a config.yaml's agent repeats a request.
func retryPatience(a *Agent) time.Duration {
	if p := a.Config.Sampling.Patience; p != nil {
		return patienceOf(*p)
	}
	return a.host.Bounds.Patience
}

// retryPolicy returns the rule of a node of a graph: its attempts, and patience only
// if the node or its graph sets it.
func retryPolicy(a *Agent, own *strictyaml.Seconds, attempts int) agent.Retry {
	r := agent.Retry{Patience: -1, Attempts: attempts, If: mayPass, Failed: a.host.warnRetry, Output: true}
	if p := cmp.Or(own, a.File.Patience); p != nil {
		r.Patience = patienceOf(*p)
	}
	return r
}

// warnRetry warns about a failed attempt that another attempt follows.
func (h *Host) warnRetry(ctx context.Context, attempt int, err error) {
	text := h.redact(fmt.Sprintf("llm node attempt %d failed (transient): %v; retrying", attempt, err))
	h.log().Warn(text)
	graph.Emit(ctx, agent.Warning{Text: text})
}

// mayPass reports whether another attempt may succeed. A provider's error says
// so itself; other errors are judged by their text.
func mayPass(err error) bool {
	var provider *llm.Error
	var budget *agent.BudgetError
	switch {
	case errors.As(err, &provider):
		return provider.IsTransient()
	case errors.As(err, &budget):
		return false
	}
	return isTransient(err.Error())
}

// transientMarks are words in errors that are probably temporary. They are
// searched in the whole text of an error, with the same case.
var transientMarks = []string{
	"timed out", "rate limit", "429", "Connection reset", "Connection refused", "produced no output",
}

// isTransient reports whether the text of an error, including its causes,
// suggests that another attempt may succeed.
func isTransient(text string) bool {
	return slices.ContainsFunc(transientMarks, func(mark string) bool { return strings.Contains(text, mark) })
}
