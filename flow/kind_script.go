package flow

// ScriptNode runs a script and merges the JSON object that it prints.
type ScriptNode struct {
	Script   string // path, relative to the agent directory
	Fallback string // where a failure leads; empty: on to next
	Timeout  Seconds
}

// Kind is script.
func (*ScriptNode) Kind() string { return "script" }

var scriptKind = kind{
	name:     "script",
	doc:      "Runs a bash, Python or TypeScript script and merges the JSON object it prints.",
	required: []string{"script"},
	optional: []string{"state_updates", "fallback", "timeout"},
	decode: func(m *fields) Body {
		return &ScriptNode{
			Script:   m.str("script", required),
			Fallback: m.str("fallback", optional),
			Timeout:  m.seconds("timeout", 30),
		}
	},
}
