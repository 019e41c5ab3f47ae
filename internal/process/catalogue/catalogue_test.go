package catalogue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/agent"
	"raddle.dev/llm"
)

var day = time.Date(2026, 7, 9, 23, 0, 0, 0, time.UTC)

// The catalogue in the program is what Parse writes, and has a date and a source.
func TestEmbedded(t *testing.T) {
	c := Embedded()
	if _, err := time.Parse(time.DateOnly, c.About.Date); err != nil || c.About.Source == "" || c.About.Models < 500 {
		t.Errorf("%+v, %v", c.About, err)
	}
	again, err := Parse(embedded, "elsewhere", day)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(again, embedded) {
		t.Error("the file is not what Parse writes")
	}
}

// Only a model's own id and dated versions of it have its facts: the price of another version differs by a factor of ten and more.
func TestFind(t *testing.T) {
	for _, test := range []struct {
		provider, model string
		input           float64 // -1: the model is unknown
	}{
		{"openai", "gpt-5", 1.25},
		{"openai", "gpt-5-2025-08-07", 1.25},
		{"openai", "gpt-5-mini", 0.25},
		{"openai", "gpt-5.4-pro", 30},
		{"openai", "gpt-5.4-pro-2026-03-05", 30},
		{"openai", "gpt-5.4-pro-2026-03", -1},
		{"openai", "gpt-5.6-sol", -1},
		{"openai", "gpt-5-", -1},
		{"openai", "gpt-5-2025-08-07-x", -1},
		{"openai", "gpt-4o-2024-05-13", 5},
		{"openai", "gpt-4o-2024-08-06", 2.5},
		{"anthropic", "claude-sonnet-4-5", 3},
		{"anthropic", "claude-sonnet-4-5-20250929", 3},
		{"anthropic", "claude-sonnet-4-5-1", -1},
		{"anthropic", "claude-sonnet-4", -1},
		{"google-vertex", "claude-sonnet-4-5@20250929", 3},
		{"google", "gemini-2.5-pro", 1.25},
		{"groq", "openai/gpt-oss-120b", 0.15},
		{"openai", "openai/gpt-5", -1},
		{"nobody", "gpt-5", -1},
		{"$about", "gpt-5", -1},
		{"", "", -1},
	} {
		m, found := Embedded().Find(test.provider, test.model)
		if found != (test.input >= 0) || found && m.Price.Input != test.input {
			t.Errorf("%s/%s: %t, %+v, want %v", test.provider, test.model, found, m.Price, test.input)
		}
	}
}

// A request with more tokens than a tier begins with is priced by that tier, as a whole; tokens of the cache have prices of their own.
func TestPrices(t *testing.T) {
	for _, test := range []struct {
		provider, model string
		usage           llm.Usage
		want            string
	}{
		{"openai", "gpt-5.4", llm.Usage{Input: 272_000, Output: 1_000_000}, "15.68"},
		{"openai", "gpt-5.4", llm.Usage{Input: 272_001, Output: 1_000_000}, "23.860005"},
		{"openai", "gpt-5.4", llm.Usage{Input: 300_000, Cached: 300_000}, "0.15"},
		{"anthropic", "claude-sonnet-5", llm.Usage{Input: 1_000_000, Cached: 400_000, Written: 200_000, Output: 10_000}, "1.48"},
		{"anthropic", "claude-haiku-4-5", llm.Usage{Input: 1000, Output: 1000}, "0.006"},
	} {
		m, found := Embedded().Find(test.provider, test.model)
		if got := fmt.Sprintf("%.8g", m.Price.CostOf(test.usage)); !found || got != test.want {
			t.Errorf("%s of %+v: %s, want %s", test.model, test.usage, got, test.want)
		}
	}
}

// An effort means the same for every model that can have it: a level where the provider has levels, a number of tokens where it counts.
func TestEfforts(t *testing.T) {
	all := []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	for _, test := range []struct {
		provider, model string
		efforts         []string
		tokens          bool
		low, high       string
	}{
		{"openai", "gpt-5.4", []string{"none", "low", "medium", "high", "xhigh"}, false, "low", "high"},
		{"openai", "gpt-5-pro", []string{"high"}, false, "low", "high"},
		{"openai", "gpt-4.1", []string{}, false, "low", "high"},
		{"anthropic", "claude-sonnet-4-5", all, true, "4096", "16384"},
		{"anthropic", "claude-opus-4-5", all, true, "4096", "16384"},
		{"anthropic", "claude-opus-4-6", all, true, "low", "high"},
		{"anthropic", "claude-opus-4-8", []string{"none", "low", "medium", "high", "xhigh", "max"}, false, "low", "high"},
		{"google", "gemini-2.5-flash", all, true, "4096", "16384"},
		{"google", "gemini-2.5-pro", all[1:], true, "4096", "16384"},
		{"google", "gemini-3.5-flash", []string{"minimal", "low", "medium", "high"}, false, "low", "high"},
	} {
		m, _ := Embedded().Find(test.provider, test.model)
		if diff := cmp.Diff(test.efforts, m.Efforts); diff != "" || m.Budgets != test.tokens {
			t.Errorf("%s: counts tokens: %t, efforts (-want +got):\n%s", test.model, m.Budgets, diff)
		}
		if low, high := m.MapEffort("low"), m.MapEffort("high"); low != test.low || high != test.high {
			t.Errorf("%s: %s and %s", test.model, low, high)
		}
		for _, same := range []string{"", "none", "12000", "extreme"} {
			if got := m.MapEffort(same); got != same {
				t.Errorf("%s: effort %q is sent as %q", test.model, same, got)
			}
		}
	}
	if m, _ := Embedded().Find("google", "gemini-2.5-flash"); m.MapEffort("max") != "24576" {
		t.Error("the largest number of tokens is exceeded")
	}
	if m, found := Embedded().Find("groq", "moonshotai/kimi-k2"); found || m.Efforts != nil {
		t.Error("the levels of an unknown model are known")
	}
}

// Addresses, keys, headers and bodies in a catalogue come to nothing.
func TestParseTakesFactsOnly(t *testing.T) {
	got, err := Parse([]byte(`{"lab":{"id":"lab","name":"Lab","api":"https://evil.example/v1","env":["LAB_KEY"],"npm":"x","models":{"a/b":{
		"id":"a/b","name":"B","provider":{"api":"https://evil.example","body":{"x":1},"headers":{"Authorization":"x"}},"reasoning":true,
		"reasoning_options":[{"type":"effort","values":["low",null]},{"type":"budget_tokens","min":3,"max":9}],"temperature":false,
		"cost":{"input":1,"output":2,"cache_write":1.25,"input_audio":4},"limit":{"context":10,"input":8,"output":5},"modalities":{"input":["pdf"],"output":["text"]}}}},
		"empty":{"models":{}}}`), "https://lab.example", day)
	if err != nil {
		t.Fatal(err)
	}
	want := `{
"$about":{"date":"2026-07-09","source":"https://lab.example","models":1},
"lab":{"models":{"a/b":{"cost":{"input":1,"output":2,"cache_write":1.25},"limit":{"context":10,"output":5},"reasoning":true,"reasoning_options":[{"type":"effort","values":["low",null]},{"type":"budget_tokens","max":9}],"modalities":{"input":["pdf"]}}}}
}
`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
	c, err := Open(got)
	if err != nil {
		t.Fatal(err)
	}
	m, _ := c.Find("lab", "a/b")
	if m.Window != 10 || m.Output != 5 || m.Price.Written != 1.25 || m.MapEffort("high") != "9" || m.MapEffort("low") != "low" {
		t.Errorf("%+v", m)
	}
}

func TestParseRefuses(t *testing.T) {
	many := `{"p":{"models":{`
	for i := range 50 {
		many += fmt.Sprintf(`"m%02d":{"cost":{"input":-1,"output":0}},`, i)
	}
	many = strings.TrimSuffix(many, ",") + `}}}`
	for name, test := range map[string]struct{ data, want string }{
		"no JSON":             {`<html>`, "not a catalogue"},
		"a list":              {`[]`, "not a catalogue"},
		"nothing":             {`{}`, "no provider in it has models"},
		"no models":           {`{"openai":{"models":{}}}`, "no provider in it has models"},
		"another shape":       {`{"openai":{"models":[]}}`, "openai:"},
		"a negative price":    {`{"p":{"models":{"m":{"cost":{"input":-1,"output":0}}}}}`, "p/m: a price of -1"},
		"an endless price":    {`{"p":{"models":{"m":{"cost":{"input":1e300,"output":0}}}}}`, "p/m: a price of 1e+300"},
		"a price of a tier":   {`{"p":{"models":{"m":{"cost":{"input":1,"output":1,"tiers":[{"input":-3,"output":1,"tier":{"size":1}}]}}}}}`, "p/m: a price of -3"},
		"a negative window":   {`{"p":{"models":{"m":{"limit":{"context":-1}}}}}`, "p/m: a limit of -1"},
		"a window of doubles": {`{"p":{"models":{"m":{"limit":{"context":1.5}}}}}`, "p:"},
		"a hidden character":  {`{"p":{"models":{"m\u001b[2J":{}}}}`, "is not the id of a model"},
		"a reversed name":     {"{\"p\\u202e\":{\"models\":{\"m\":{}}}}", "is not the name of a provider"},
		"a new line":          {`{"p":{"models":{"m\n\"x\":{}":{}}}}`, "is not the id of a model"},
		"an odd source":       {`{"$about":{"date":"2026-01-01","source":"a\u001b[2Jb"},"p":{"models":{"m":{}}}}`, "is not a name or an address"},
		"an endless source":   {`{"$about":{"date":"2026-01-01","source":"` + strings.Repeat("x", 300) + `"},"p":{"models":{"m":{}}}}`, "is not a name or an address"},
		"no day":              {`{"$about":{"date":"soon","source":"x"},"p":{"models":{"m":{}}}}`, `"soon" is not a day`},
		"all faults":          {many, "and 30 more"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse([]byte(test.data), "here", day)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q; %s", err, test.want, got)
			}
		})
	}
	if _, err := Parse(make([]byte, MaxSize+1), "here", day); err == nil {
		t.Error("a catalogue of any size is read")
	}
}

// A file that was damaged after it was written has no facts, and does not panic.
func TestOpenDamaged(t *testing.T) {
	for _, data := range []string{"", "{}", "{\n\"$about\":nothing\n}\n"} {
		if _, err := Open([]byte(data)); err == nil {
			t.Errorf("%q is a catalogue", data)
		}
	}
	c, err := Open([]byte("{\n\"$about\":{\"date\":\"2026-07-09\"},\n\"p\":{\"models\":{\"m\":{\"cost\"\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if m, found := c.Find("p", "m"); found || !m.Price.IsZero() {
		t.Errorf("%+v", m)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"p":{"models":{"m":{"cost":{"input":1,"output":2},"reasoning":true,"reasoning_options":[{"type":"toggle"}]}}}}`))
	f.Add([]byte(`{"$about":{"date":"2026-07-09","source":"x","models":3},"p":{"models":{"m":{}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		parsed, err := Parse(data, "here", day)
		if err != nil {
			return
		}
		if !json.Valid(parsed) {
			t.Fatalf("%q is written as %q", data, parsed)
		}
		again, err := Parse(parsed, "elsewhere", day)
		if err != nil || !bytes.Equal(again, parsed) {
			t.Fatalf("%q is read as %q, %v", parsed, again, err)
		}
		c, err := Open(parsed)
		if err != nil {
			t.Fatal(err)
		}
		found := 0
		var file map[string]json.RawMessage
		_ = json.Unmarshal(parsed, &file)
		for name := range file {
			found += len(c.readProvider(name))
		}
		if found != c.About.Models {
			t.Fatalf("%d of %d models are found in %q", found, c.About.Models, parsed)
		}
	})
}

// BenchmarkFind finds one model in a process that has looked for no other.
func BenchmarkFind(b *testing.B) {
	for b.Loop() {
		c, err := Open(embedded)
		if err != nil {
			b.Fatal(err)
		}
		if m, _ := c.Find("openai", "gpt-5.4"); m.Price.IsZero() {
			b.Fatal(agent.Price{})
		}
	}
}
