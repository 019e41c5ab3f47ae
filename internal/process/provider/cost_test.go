package provider

import (
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// The price of a reply is that of exactly the model that its provider names, of the clients that can have given it.
func TestUsageCost(t *testing.T) {
	five := 5.0
	usage := llm.Usage{Input: 1_000_000}
	mine := config.Client{Name: "mine", Type: "openai-compatible", Base: "http://127.0.0.1:1/v1", Models: []config.Model{{Name: "gpt-5", InputPrice: &five}, {Name: "own", InputPrice: &five}}}
	hour := config.Client{Name: "anthropic", Type: "anthropic", Cache: "1h"}
	for name, test := range map[string]struct {
		clients []config.Client
		env     environ.Environ
		assumed float64
		model   string
		written bool    // the tokens are written to a cache
		want    float64 // -1: unknown
	}{
		"its client is ready":             {env: environ.Environ{"OPENAI_API_KEY=k"}, model: "gpt-5", want: 1.25},
		"no client is ready":              {model: "gpt-5", want: 1.25},
		"a dated version":                 {model: "gpt-5-2025-08-07", want: 1.25},
		"a later version":                 {model: "gpt-5.9", want: -1},
		"a later version, assumed":        {model: "gpt-5.9", assumed: 7, want: 7},
		"known, in spite of an assumed":   {model: "gpt-5", assumed: 7, want: 1.25},
		"a transcript":                    {model: "script:a.yaml", assumed: 7, want: -1},
		"config.yaml":                     {clients: []config.Client{mine}, model: "gpt-5", want: 5},
		"a version of config.yaml's":      {clients: []config.Client{mine}, model: "own-20260102", want: 5},
		"a longer name than config.yaml":  {clients: []config.Client{mine}, model: "own-large", want: -1},
		"two clients at different prices": {model: "openai/gpt-oss-120b", want: -1},
		"written for five minutes":        {env: environ.Environ{"ANTHROPIC_API_KEY=k"}, model: "claude-haiku-4-5", written: true, want: 1.25},
		"written for an hour":             {clients: []config.Client{hour}, env: environ.Environ{"ANTHROPIC_API_KEY=k"}, model: "claude-haiku-4-5", written: true, want: 2},
		"one of them is ready":            {env: environ.Environ{"GROQ_API_KEY=k"}, model: "openai/gpt-oss-120b", want: 0.15},
	} {
		usage.Written = 0
		if test.written {
			usage.Written = usage.Input
		}
		c := &config.Config{Clients: test.clients, AssumePrice: config.Price{Input: test.assumed, Output: test.assumed}}
		dollars, known := NewResolver(c, config.Dirs{Config: t.TempDir()}, test.env).UsageCost(test.model, usage)
		if known != (test.want >= 0) || known && dollars != test.want {
			t.Errorf("%s: %v, %t, want %v", name, dollars, known, test.want)
		}
	}
}
