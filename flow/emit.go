package flow

import (
	"encoding/json"

	"raddle.dev/llm"
)

// These are the values that nodes emit while they run, as [graph.Emitted]
// events.
type (
	// ModelCall says that a model is about to be called. Active reports whether
	// the node names no model of its own.
	ModelCall struct {
		Model  string   `json:"model,omitempty"`
		Active bool     `json:"active,omitempty"`
		Tools  []string `json:"tools,omitempty"`
	}
	// Delta is a piece of a model's reply.
	Delta struct {
		Text string `json:"text"`
	}
	// ModelDone says that a reply is complete. It is not emitted for a reply
	// that an earlier drive recorded.
	ModelDone struct {
		Model string    `json:"model,omitempty"`
		Usage llm.Usage `json:"usage"`
	}
	// ScriptRun says that a script starts.
	ScriptRun struct {
		Script string `json:"script"`
	}
	// Merged lists the keys that a node's result set in the state.
	Merged struct {
		Keys []string `json:"keys"`
	}
	// ScriptNext says that a script chose the next node.
	ScriptNext struct {
		Node string `json:"node"`
	}
	// Spawned says that a child agent starts.
	Spawned struct {
		Agent  string `json:"agent"`
		Prompt string `json:"prompt"`
	}
	// Extracting says that a model is asked to convert a text to data. Repair
	// is set the second time.
	Extracting struct {
		Repair bool `json:"repair,omitempty"`
	}
	// Searching says that a knowledge base is about to be searched.
	Searching struct {
		Node  string `json:"node,omitempty"` // empty: the agent's own documents
		Query string `json:"query"`
		TopK  int    `json:"top_k,omitempty"` // 0: the default of the base
	}
	// Found lists the chunks that a search found.
	Found struct {
		Chunks []Chunk `json:"chunks"`
	}
	// Warning reports a problem that did not stop the run.
	Warning struct {
		Text string `json:"text"`
	}
)

// typed marshals an emitted value with an additional field "type".
func typed(name string, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	out := append([]byte(`{"type":"`+name+`"`), ',')
	if len(b) == len("{}") {
		return append(out[:len(out)-1], '}'), nil
	}
	return append(out, b[1:]...), nil
}

// MarshalJSON adds the field "type".
func (v ModelCall) MarshalJSON() ([]byte, error) {
	type plain ModelCall
	return typed("model_call", plain(v))
}

// MarshalJSON adds the field "type".
func (v Delta) MarshalJSON() ([]byte, error) { type plain Delta; return typed("delta", plain(v)) }

// MarshalJSON adds the field "type".
func (v ModelDone) MarshalJSON() ([]byte, error) {
	type plain ModelDone
	return typed("model_done", plain(v))
}

// MarshalJSON adds the field "type".
func (v ScriptRun) MarshalJSON() ([]byte, error) {
	type plain ScriptRun
	return typed("script_run", plain(v))
}

// MarshalJSON adds the field "type".
func (v Merged) MarshalJSON() ([]byte, error) { type plain Merged; return typed("merged", plain(v)) }

// MarshalJSON adds the field "type".
func (v ScriptNext) MarshalJSON() ([]byte, error) {
	type plain ScriptNext
	return typed("script_next", plain(v))
}

// MarshalJSON adds the field "type".
func (v Spawned) MarshalJSON() ([]byte, error) { type plain Spawned; return typed("spawned", plain(v)) }

// MarshalJSON adds the field "type".
func (v Extracting) MarshalJSON() ([]byte, error) {
	type plain Extracting
	return typed("extracting", plain(v))
}

// MarshalJSON adds the field "type".
func (v Searching) MarshalJSON() ([]byte, error) {
	type plain Searching
	return typed("searching", plain(v))
}

// MarshalJSON adds the field "type".
func (v Found) MarshalJSON() ([]byte, error) { type plain Found; return typed("found", plain(v)) }

// MarshalJSON adds the field "type".
func (v Warning) MarshalJSON() ([]byte, error) { type plain Warning; return typed("warning", plain(v)) }
