package provider

import (
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/config"
)

// catalogue is what providers publish about their models: tokens, and list prices as of
// autumn 2025. A name covers all names that begin with it, and the longest
// counts. config.yaml overrides it.
var catalogue = []struct {
	name           string
	window, output int
	price          agent.Price
}{
	{"claude-3-5-haiku", 200_000, 8_192, agent.Price{Input: 0.8, Output: 4, Cached: 0.08}},
	{"claude-haiku-4", 200_000, 64_000, agent.Price{Input: 1, Output: 5, Cached: 0.1}},
	{"claude-opus-4", 200_000, 32_000, agent.Price{Input: 15, Output: 75, Cached: 1.5}},
	{"claude-opus-4-5", 200_000, 64_000, agent.Price{Input: 5, Output: 25, Cached: 0.5}},
	{"claude-sonnet-4", 200_000, 64_000, agent.Price{Input: 3, Output: 15, Cached: 0.3}},
	{"gemini-2.5-flash", 1_048_576, 65_536, agent.Price{Input: 0.3, Output: 2.5, Cached: 0.075}},
	{"gemini-2.5-flash-lite", 1_048_576, 65_536, agent.Price{Input: 0.1, Output: 0.4, Cached: 0.025}},
	{"gemini-2.5-pro", 1_048_576, 65_536, agent.Price{Input: 1.25, Output: 10, Cached: 0.31}},
	{"gpt-4.1", 1_047_576, 32_768, agent.Price{Input: 2, Output: 8, Cached: 0.5}},
	{"gpt-4.1-mini", 1_047_576, 32_768, agent.Price{Input: 0.4, Output: 1.6, Cached: 0.1}},
	{"gpt-4.1-nano", 1_047_576, 32_768, agent.Price{Input: 0.1, Output: 0.4, Cached: 0.025}},
	{"gpt-4o", 128_000, 16_384, agent.Price{Input: 2.5, Output: 10, Cached: 1.25}},
	{"gpt-4o-mini", 128_000, 16_384, agent.Price{Input: 0.15, Output: 0.6, Cached: 0.075}},
	{"gpt-5", 400_000, 128_000, agent.Price{Input: 1.25, Output: 10, Cached: 0.125}},
	{"gpt-5-mini", 400_000, 128_000, agent.Price{Input: 0.25, Output: 2, Cached: 0.025}},
	{"gpt-5-nano", 400_000, 128_000, agent.Price{Input: 0.05, Output: 0.4, Cached: 0.005}},
	{"o3", 200_000, 100_000, agent.Price{Input: 2, Output: 8, Cached: 0.5}},
	{"o4-mini", 200_000, 100_000, agent.Price{Input: 1.1, Output: 4.4, Cached: 0.275}},
}

// catalogueFacts returns the catalogue's facts about a model by its provider's name for it.
// The name may follow the name of the vendor, as resellers write it.
func catalogueFacts(model string) flow.ModelFacts {
	name := model[strings.LastIndexByte(model, '/')+1:]
	var facts flow.ModelFacts
	longest := 0
	for _, m := range catalogue {
		if len(m.name) > longest && strings.HasPrefix(name, m.name) {
			longest, facts = len(m.name), flow.ModelFacts{Window: m.window, Output: m.output, Price: m.price}
		}
	}
	return facts
}

// overrideFacts returns facts, overridden by what the configuration says about the model.
func overrideFacts(f flow.ModelFacts, m *config.Model) flow.ModelFacts {
	if m.Window > 0 {
		f.Window = m.Window
	}
	if m.Output > 0 {
		f.Output = m.Output
	}
	if m.Efforts != nil {
		f.Efforts = m.Efforts
	}
	if m.InputPrice != nil || m.OutputPrice != nil {
		f.Price = agent.Price{Input: floatOrZero(m.InputPrice), Output: floatOrZero(m.OutputPrice)}
	}
	f.NoTools = m.NoTools
	return f
}

func floatOrZero(f *float64) float64 {
	if f == nil {
		return 0
	}
	return *f
}
