package catalogue

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"

	"raddle.dev/agent"
	"raddle.dev/internal/base/pattern"
)

//go:embed models.json
var embedded []byte

// Embedded returns the catalogue that is in the program.
var Embedded = sync.OnceValue(func() *Catalogue {
	c, err := Open(embedded)
	if err != nil {
		panic(err) // TestEmbedded opens it
	}
	return c
})

// A Catalogue is a list of models by their providers. It is safe for concurrent use.
type Catalogue struct {
	About About

	data []byte
	mu   sync.Mutex
	read map[string]map[string]Model // by provider; the lines that were read
}

// About says where a catalogue is from.
type About struct {
	Date   string `json:"date"`   // YYYY-MM-DD, on which its facts were collected
	Source string `json:"source"` // a file or an address
	Models int    `json:"models"` // how many models it has
}

// A Model is what a provider publishes about one of its models. A zero field is unknown.
type Model struct {
	Window int // tokens of a request and its reply together
	Output int // tokens of a reply
	Price  agent.Price
	Free   bool // it has a price, and that is zero

	// Efforts are the levels of reasoning effort, from the least: empty for a model that does not reason, nil if
	// unknown.
	Efforts []string
	Budgets bool // its effort may be a number of tokens
	Budget  int  // the largest number of tokens; 0: unknown

	named []string // the levels that the provider itself knows

	Media   []string // what it takes, such as "text", "image" and "pdf"; nil if unknown
	Schemas bool     // its answers can be held to a schema
	NoTools bool     // it cannot call tools
	Retired bool     // its provider has said that it will end
}

// Levels are the levels of reasoning effort of every model, from the least to the most.
var Levels = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// Open returns a catalogue in the form that [Parse] writes. It reads the first line only.
func Open(data []byte) (*Catalogue, error) {
	c := &Catalogue{data: data, read: map[string]map[string]Model{}}
	line, found := c.findLine(aboutKey)
	if !found {
		return nil, errNoCatalogue
	}
	if err := json.Unmarshal(line, &c.About); err != nil {
		return nil, err
	}
	return c, nil
}

// aboutKey is the member of the file that says where it is from. No provider has this name.
const aboutKey = "$about"

// findLine returns the value of one member of the file.
func (c *Catalogue) findLine(key string) (value []byte, found bool) {
	_, rest, found := bytes.Cut(c.data, slices.Concat([]byte("\n"), encodeKey(key)))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	return bytes.TrimSuffix(line, []byte(",")), found
}

// Find returns what a provider publishes about a model: one with exactly this id, otherwise the one that it is a dated
// version of, such as gpt-5-2025-08-07 of gpt-5. A name of which the catalogue has only the beginning is unknown.
func (c *Catalogue) Find(provider, model string) (Model, bool) {
	all := c.readProvider(provider)
	if m, found := all[model]; found {
		return m, true
	}
	m, found := all[dated().ReplaceAllString(model, "")]
	return m, found
}

// dated matches the date at the end of the id of one version of a model.
var dated = pattern.CompileLater(`[-@](20\d\d-\d\d-\d\d|20\d{6})$`)

// IsVersion reports whether a name is that of a model or of a dated version of it.
func IsVersion(name, model string) bool {
	return name == model || dated().ReplaceAllString(name, "") == model
}

// List returns the ids of the models of a provider in order, without dated versions, retired models, and those that
// cannot call tools.
func (c *Catalogue) List(provider string) []string {
	var ids []string
	for id, m := range c.readProvider(provider) {
		if !m.Retired && !m.NoTools && !dated().MatchString(id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// readProvider returns the models of a provider. The map must not be changed.
func (c *Catalogue) readProvider(provider string) map[string]Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	if all, done := c.read[provider]; done {
		return all
	}
	var p listedProvider
	if line, found := c.findLine(provider); found {
		if json.Unmarshal(line, &p) != nil {
			p = listedProvider{} // a file that was changed by hand: its facts are unknown
		}
	}
	all := map[string]Model{}
	for id, m := range p.Models {
		all[id] = m.facts(strings.Contains(id, "claude-"))
	}
	c.read[provider] = all
	return all
}

// listedProvider and listedModel are the members of models.dev's api.json that a catalogue keeps.
type listedProvider struct {
	Models map[string]listedModel `json:"models"`
}

type listedModel struct {
	Cost       *listedCost    `json:"cost,omitempty"`
	Limit      listedLimit    `json:"limit,omitzero"`
	Reasoning  bool           `json:"reasoning,omitempty"`
	Efforts    []listedEffort `json:"reasoning_options,omitempty"`
	ToolCall   *bool          `json:"tool_call,omitempty"`
	Structured bool           `json:"structured_output,omitempty"`
	Modalities listedMedia    `json:"modalities,omitzero"`
	Status     string         `json:"status,omitempty"`
}

type listedCost struct {
	Input      float64      `json:"input"`
	Output     float64      `json:"output"`
	CacheRead  float64      `json:"cache_read,omitempty"`
	CacheWrite float64      `json:"cache_write,omitempty"`
	Tiers      []listedTier `json:"tiers,omitempty"`
}

type listedTier struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read,omitempty"`
	CacheWrite float64 `json:"cache_write,omitempty"`
	Tier       struct {
		Type string `json:"type,omitempty"` // "" and "context": by the tokens of the request
		Size int    `json:"size"`
	} `json:"tier"`
}

type listedLimit struct {
	Context int `json:"context,omitempty"`
	Output  int `json:"output,omitempty"`
}

type listedEffort struct {
	Type   string    `json:"type"`             // "effort", "budget_tokens" or "toggle"
	Values []*string `json:"values,omitempty"` // null: the provider's choice
	Max    int       `json:"max,omitempty"`
}

type listedMedia struct {
	Input []string `json:"input,omitempty"`
}

// facts returns what a listed model is known for. Claude models differ in two ways from what the list says of their
// effort.
func (l listedModel) facts(claude bool) Model {
	m := Model{
		Window:  l.Limit.Context,
		Output:  l.Limit.Output,
		NoTools: l.ToolCall != nil && !*l.ToolCall,
		Retired: l.Status == "deprecated",
		Media:   l.Modalities.Input,
		Schemas: l.Structured,
	}
	if l.Cost != nil {
		m.Price = agent.Price{
			Input:   l.Cost.Input,
			Output:  l.Cost.Output,
			Cached:  l.Cost.CacheRead,
			Written: l.Cost.CacheWrite,
		}
		m.Free = m.Price.IsZero()
		for _, t := range l.Cost.Tiers {
			if t.Tier.Type == "" || t.Tier.Type == "context" {
				m.Price.Long = append(m.Price.Long, agent.LongPrice{
					Above:   t.Tier.Size,
					Input:   t.Input,
					Output:  t.Output,
					Cached:  t.CacheRead,
					Written: t.CacheWrite,
				})
			}
		}
	}
	m.setEfforts(l, claude)
	return m
}

// setEfforts derives the levels of a model. One whose effort is a number of tokens takes every level, as a number.
// Claude models think only if they are asked to, so that none is a level of all of them; and those with levels up to
// high take them only together with a number of tokens (https://platform.claude.com/docs/en/build-with-claude/effort,
// adaptive-thinking).
func (m *Model) setEfforts(l listedModel, claude bool) {
	has := map[string]bool{"none": claude}
	for _, option := range l.Efforts {
		switch option.Type {
		case "toggle":
			has["none"] = true
		case "budget_tokens":
			m.Budgets = true
			m.Budget = option.Max
		case "effort":
			for _, v := range option.Values {
				if v != nil {
					has[*v] = true
				}
			}
		}
	}
	if l.Reasoning && len(l.Efforts) == 0 {
		return // unknown
	}
	counted := claude && m.Budgets && !has["max"]
	m.Efforts = []string{}
	if !l.Reasoning {
		return
	}
	for _, level := range Levels {
		if has[level] && (!counted || level == "none") {
			m.named = append(m.named, level)
		}
		if has[level] || m.Budgets && level != "none" {
			m.Efforts = append(m.Efforts, level)
		}
	}
}

// tokensOf has the number of tokens of each level for models whose effort is a number of tokens.
var tokensOf = map[string]int{"minimal": 1024, "low": 4096, "medium": 8192, "high": 16384, "xhigh": 32768, "max": 65536}

// MapEffort returns the value that a request for the model has for an effort: a level for a model that has levels, a
// number of tokens for one that counts them. Of an effort that the model cannot have it returns the effort itself,
// which its provider will refuse.
func (m Model) MapEffort(effort string) string {
	tokens, level := tokensOf[effort]
	if !level || !m.Budgets || slices.Contains(m.named, effort) {
		return effort
	}
	if m.Budget > 0 {
		tokens = min(tokens, m.Budget)
	}
	return strconv.Itoa(tokens)
}
