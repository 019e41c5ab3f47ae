package spec

import "raddle.dev/internal/strictyaml"

// MapNode runs one node for every item of a list.
type MapNode struct {
	Over           Template // strict and typed: an array
	As             string   // key of the item while the branch runs
	Branch         string   // id of the node to run
	OutputKey      string   // key of the branch's result
	CollectInto    string   // key of the array of results
	MaxConcurrency *int     // nil: the graph's
}

// Kind returns "map".
func (*MapNode) Kind() string { return "map" }

var mapKind = kind{
	Name:     "map",
	Doc:      "Runs one node for every item of a list and collects the results.",
	Required: []string{"over", "as", "branch", "collect_into"},
	Optional: []string{"output_key", "max_concurrency"},
	Decode: func(m *strictyaml.Fields) Body {
		n := &MapNode{
			Over:           ParseTemplate(m.ReadText("over", strictyaml.Required)),
			As:             m.ReadText("as", strictyaml.Required),
			Branch:         m.ReadText("branch", strictyaml.Required),
			OutputKey:      "output",
			CollectInto:    m.ReadText("collect_into", strictyaml.Required),
			MaxConcurrency: m.ReadOptionalCount("max_concurrency"),
		}
		if m.HasValue("output_key") {
			n.OutputKey = m.ReadText("output_key", strictyaml.Defaulted)
		}
		return n
	},
}
