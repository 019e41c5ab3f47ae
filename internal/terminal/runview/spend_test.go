package runview

import (
	"testing"

	"raddle.dev/llm"
)

func TestSpending(t *testing.T) {
	var s SpendTotal
	if s.String() != "" {
		t.Errorf("of nothing: %q", s.String())
	}
	s.AddCall(llm.Usage{Input: 10, Output: 2}, "priced", 0.5, true)
	if got := s.String(); got != "1 model call, 10 tokens in, 2 out, 0.5000 USD" {
		t.Errorf("%q", got)
	}
	s.AddCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	s.AddCall(llm.Usage{Input: 5, Output: 1}, "free", 0, false)
	if got := s.String(); got != "3 model calls, 20 tokens in, 4 out, 0.5000 USD and more: the price of free is not known" {
		t.Errorf("%q", got)
	}
}
