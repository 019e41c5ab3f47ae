package agent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/graph"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// An Override is what one turn changes in the configuration of model nodes.
// Write it to the key Overrides under the path of a node: the names of the
// agents above it and its own name, separated by '/'. The path of an agent
// applies to everything inside it, and "" applies to all nodes.
//
//	set := append(agent.Turn("Be quick."), agent.Overrides.Set(map[string]agent.Override{
//		"":             {Temperature: new(0.2)},
//		"helper/think": {Model: "small"},
//	}))
//
// An inner path takes priority over an outer path, and both take priority over
// the configuration. An unknown path has no effect: see CheckOverrides. Several
// writes are combined. The overrides are part of the state, so a resumed run
// has them too; the next Turn starts without them.
type Override struct {
	System      *string          `json:"system,omitempty"` // the whole system prompt
	Model       string           `json:"model,omitempty"`  // a name in Think.Models
	Temperature *float64         `json:"temperature,omitempty"`
	TopP        *float64         `json:"top_p,omitempty"`
	MaxTokens   *int             `json:"max_tokens,omitempty"` // 0: the provider's limit
	Effort      *string          `json:"effort,omitempty"`
	Stop        []string         `json:"stop"`             // nil: unchanged; an empty list: none
	Schema      *json.RawMessage `json:"schema,omitempty"` // of the reply; an empty value: none
	// Tools names the tools that may be called; nil: all; an empty list: none.
	// Calls of other tools are not made.
	Tools []string `json:"tools"`
	// Compact makes the turn summarize the conversation, and nothing else: see CompactTurn.
	Compact bool `json:"compact,omitempty"`
}

// noSchema is the JSON of an empty Schema. Without it an empty Schema would be
// encoded as null, which means no override.
const noSchema = `""`

// plainOverride has the fields of an Override and not its methods.
type plainOverride Override

// MarshalJSON distinguishes an empty Schema from a missing one.
func (o Override) MarshalJSON() ([]byte, error) {
	p := plainOverride(o)
	if p.Schema != nil && len(*p.Schema) == 0 {
		p.Schema = new(json.RawMessage(noSchema))
	}
	return json.Marshal(p)
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (o *Override) UnmarshalJSON(b []byte) error {
	if err := json.Unmarshal(b, (*plainOverride)(o)); err != nil {
		return err
	}
	if o.Schema != nil && string(*o.Schema) == noSchema {
		o.Schema = new(json.RawMessage)
	}
	return nil
}

// CheckOverrides reports paths that name no model node and no agent of a graph:
// their overrides would have no effect. The error names all of them, and the
// paths that exist.
func CheckOverrides(g *graph.Graph, o map[string]Override) error {
	shape := g.Structure()
	known := map[string]bool{"": true}
	collectModelPaths(&shape, "", known)
	var unknown []string
	for _, path := range slices.Sorted(maps.Keys(o)) {
		if !known[strings.Trim(path, "/")] {
			unknown = append(unknown, path)
		}
	}
	if unknown == nil {
		return nil
	}
	return fmt.Errorf("overrides for %q, which are not model nodes or agents of graph %s; it has %q", unknown, shape.Name, slices.Sorted(maps.Keys(known)))
}

// collectModelPaths collects the paths of a graph that overrides may name.
func collectModelPaths(s *graph.Structure, path string, known map[string]bool) {
	for _, n := range s.Nodes {
		if !hasModel(s, n.Name) {
			continue
		}
		known[path+n.Name] = true
		if n.Child != nil {
			collectModelPaths(n.Child, path+n.Name+"/", known)
		}
		for kind, child := range n.Children { // an agent of a team has its kind as path, whatever its id
			known[path+n.Name+"/"+kind] = true
			collectModelPaths(&child, path+n.Name+"/"+kind+"/", known)
		}
	}
}

// withOverride returns an override with another one on top.
func (o Override) withOverride(inner Override) Override {
	if inner.Tools == nil {
		inner.Tools = o.Tools
	}
	if inner.Stop == nil {
		inner.Stop = o.Stop
	}
	return Override{
		System: cmp.Or(inner.System, o.System), Model: cmp.Or(inner.Model, o.Model),
		Temperature: cmp.Or(inner.Temperature, o.Temperature), TopP: cmp.Or(inner.TopP, o.TopP),
		MaxTokens: cmp.Or(inner.MaxTokens, o.MaxTokens), Effort: cmp.Or(inner.Effort, o.Effort),
		Stop: inner.Stop, Schema: cmp.Or(inner.Schema, o.Schema), Tools: inner.Tools,
		Compact: inner.Compact || o.Compact,
	}
}

// mergeOverrides is the reducer of Overrides. It does not change its arguments.
func mergeOverrides(old map[string]Override, _ bool, more map[string]Override) (map[string]Override, error) {
	all := maps.Clone(old)
	if all == nil {
		all = map[string]Override{}
	}
	for _, path := range slices.Sorted(maps.Keys(more)) { // "think" and "/think" are one path
		name := strings.Trim(path, "/")
		all[name] = all[name].withOverride(more[path])
	}
	return all, nil
}

// overrideOf returns the override for a node of this graph.
func overrideOf(s graph.State, name string) Override {
	all := Overrides.Get(s)
	if len(all) == 0 {
		return Override{}
	}
	return all[""].withOverride(all[name])
}

// OverridesFor returns the overrides for the child graph of a node, as the
// child's first write. For a named child, node is the node's path with the
// child's kind. Agent nodes and teams call it themselves.
func OverridesFor(s graph.State, node string) graph.Write {
	all := Overrides.Get(s)
	inside := map[string]Override{}
	everywhere := all[""]
	for i, c := range node + "/" {
		if c == '/' {
			everywhere = everywhere.withOverride(all[node[:i]])
		}
	}
	if !everywhere.isEmpty() {
		inside[""] = everywhere
	}
	for path, o := range all {
		if rest, ok := strings.CutPrefix(path, node+"/"); ok {
			inside[rest] = o
		}
	}
	return Overrides.Set(inside)
}

func (o *Override) isEmpty() bool {
	return o.System == nil && o.Model == "" && o.Temperature == nil && o.TopP == nil && o.MaxTokens == nil &&
		o.Effort == nil && o.Stop == nil && o.Schema == nil && o.Tools == nil
}

// selectModel returns the model that the override selects.
func (o *Override) selectModel(node string, configured llm.Model, further map[string]llm.Model) (llm.Model, error) {
	if o.Model == "" {
		return configured, nil
	}
	if m := further[o.Model]; m != nil {
		return m, nil
	}
	return nil, fmt.Errorf("the override for node %s names the model %q, which it does not have; it has %q", node, o.Model, slices.Sorted(maps.Keys(further)))
}

// applyTo returns a request with the override's settings.
func (o *Override) applyTo(r llm.Request) llm.Request {
	if o.System != nil {
		r.System = *o.System
	}
	r.Temperature = cmp.Or(o.Temperature, r.Temperature)
	r.TopP = cmp.Or(o.TopP, r.TopP)
	if o.MaxTokens != nil {
		r.MaxTokens = *o.MaxTokens
	}
	if o.Effort != nil {
		r.Effort = *o.Effort
	}
	if o.Stop != nil {
		r.Stop = o.Stop
	}
	if o.Schema != nil {
		r.Schema = *o.Schema
	}
	return r
}

// filterTools returns the tools that may be called.
func (o Override) filterTools(tools []tool.Tool) []tool.Tool {
	if o.Tools == nil {
		return tools
	}
	return slices.DeleteFunc(slices.Clone(tools), func(t tool.Tool) bool { return !slices.Contains(o.Tools, t.Name) })
}
