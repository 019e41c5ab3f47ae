package flow

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
	name:     "map",
	doc:      "Runs one node for every item of a list and collects the results.",
	required: []string{"over", "as", "branch", "collect_into"},
	optional: []string{"output_key", "max_concurrency"},
	decode: func(m *fields) Body {
		n := &MapNode{
			Over:           ParseTemplate(m.readText("over", required)),
			As:             m.readText("as", required),
			Branch:         m.readText("branch", required),
			OutputKey:      "output",
			CollectInto:    m.readText("collect_into", required),
			MaxConcurrency: m.maybeCount("max_concurrency"),
		}
		if m.hasValue("output_key") {
			n.OutputKey = m.readText("output_key", defaulted)
		}
		return n
	},
}
