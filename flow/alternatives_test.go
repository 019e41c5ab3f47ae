package flow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/llm"
)

func TestSplitModels(t *testing.T) {
	for id, want := range map[string][]string{
		"a:b": {"a:b"}, "": {""}, "a": {"a"}, "a:b,c:d": {"a:b", "c:d"}, "a:b, c:d:e ": {"a:b", "c:d:e"},
		"script:with,comma.yaml": {"script:with,comma.yaml"}, "a:b,": {"a:b,"}, ",": {","}, "script:a.yaml,script:b.yaml": {"script:a.yaml", "script:b.yaml"},
	} {
		if diff := cmp.Diff(want, flow.SplitModels(id)); diff != "" {
			t.Errorf("%q: %s", id, diff)
		}
	}
}

// What holds for a list of models holds for each of them: no request costs more than its price says, whichever answers.
func TestMergeFacts(t *testing.T) {
	a := flow.ModelFacts{Window: 100, Output: 7, Efforts: []string{"low", "high"}, EffortTokens: true, Price: agent.Price{
		Input: 2, Output: 10, Cached: 0.5, Long: []agent.LongPrice{{Above: 200_000, Input: 10, Output: 20, Cached: 1}}}}
	b := flow.ModelFacts{Window: 80, Efforts: []string{"none", "high"}, Price: agent.Price{
		Input: 3, Output: 5, Written: 4, Long: []agent.LongPrice{{Above: 272_000, Input: 4, Output: 30}}}}
	for _, m := range []flow.ModelFacts{a.Merge(b), b.Merge(a)} {
		if m.Window != 80 || m.Output != 7 || !cmp.Equal(m.Efforts, []string{"high"}) || m.EffortTokens || m.Free {
			t.Errorf("%+v", m)
		}
		for _, input := range []int{1, 200_000, 200_001, 272_000, 272_001, 900_000} {
			for _, u := range []llm.Usage{{Input: input}, {Output: input}, {Input: input, Cached: input}, {Input: input, Written: input}} {
				want := max(a.Price.CostOf(u), b.Price.CostOf(u))
				if got := m.Price.CostOf(u); got < want-1e-9 || got > want+1e-9 {
					t.Errorf("%+v costs %v, want %v", u, got, want)
				}
			}
		}
	}
	unknown := flow.ModelFacts{}
	if m := a.Merge(unknown); !m.Price.IsZero() || m.Window != 100 || len(m.Efforts) != 2 {
		t.Errorf("with an unknown model: %+v", m)
	}
	if m := a.Merge(flow.ModelFacts{Free: true}); !cmp.Equal(m.Price, a.Price) || m.Free {
		t.Errorf("with a free model: %+v", m)
	}
}
