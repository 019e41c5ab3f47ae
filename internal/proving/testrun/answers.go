package testrun

import (
	"encoding/json"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/proving/testcase"
)

// answer returns the answer of the case to a question. A question that is asked again gets the next one.
func (s *stubs) answer(q graph.Question) (any, bool) {
	name := s.asker(q)
	i := slices.IndexFunc(s.c.Answers, func(a testcase.Answer) bool { return a.Question == name || a.Question == q.Node })
	if i < 0 {
		i = slices.IndexFunc(s.c.Answers, func(a testcase.Answer) bool { return strings.Contains(q.Prompt, a.Question) })
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, found := s.asked[q.ID]; found && q.Rejected == "" {
		return v, true
	}
	if i < 0 {
		return nil, false
	}
	a := &s.c.Answers[i]
	n := s.used["answer "+a.Question]
	if n >= len(a.Values) {
		return nil, false
	}
	s.used["answer "+a.Question]++
	s.asked[q.ID] = a.Values[n]
	return a.Values[n], true
}

// asker returns who asks a question: the node of a graph, or the tool that a model has called.
func (s *stubs) asker(q graph.Question) string {
	var call agent.CallData
	if json.Unmarshal(q.Data, &call) == nil && call.Tool != "" {
		return call.Tool
	}
	path, _, _ := strings.Cut(q.ID, "#")
	if p := s.names.findNamed(path); p.Name != "" {
		return p.Name
	}
	return q.Kind
}
