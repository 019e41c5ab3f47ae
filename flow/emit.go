package flow

import (
	"encoding/json"

	"raddle.dev/llm"
)

// These are the values that nodes emit while they run, as [graph.ValueEmitted]
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
	// KeysMerged lists the keys that a node's result set in the state.
	KeysMerged struct {
		Keys []string `json:"keys"`
	}
	// ScriptNext says that a script chose the next node.
	ScriptNext struct {
		Node string `json:"node"`
	}
	// ChildSpawned says that a child agent starts.
	ChildSpawned struct {
		Agent  string `json:"agent"`
		Prompt string `json:"prompt"`
	}
	// ExtractionStarted says that a model is asked to convert a text to data. Repair
	// is set the second time.
	ExtractionStarted struct {
		Repair bool `json:"repair,omitempty"`
	}
	// SearchRequest says that a knowledge base is about to be searched.
	SearchRequest struct {
		Node  string `json:"node,omitempty"` // empty: the agent's own documents
		Query string `json:"query"`
		TopK  int    `json:"top_k,omitempty"` // 0: the default of the base
	}
	// SearchDone lists the chunks that a search found.
	SearchDone struct {
		Chunks []Chunk `json:"chunks"`
	}
	// Warning reports a problem that did not stop the run.
	Warning struct {
		Text string `json:"text"`
	}
)

// marshalTyped marshals an emitted value with an additional field "type".
func marshalTyped(name string, v any) ([]byte, error) {
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
	return marshalTyped("model_call", plain(v))
}

// MarshalJSON adds the field "type".
func (v Delta) MarshalJSON() ([]byte, error) {
	type plain Delta
	return marshalTyped("delta", plain(v))
}

// MarshalJSON adds the field "type".
func (v ModelDone) MarshalJSON() ([]byte, error) {
	type plain ModelDone
	return marshalTyped("model_done", plain(v))
}

// MarshalJSON adds the field "type".
func (v ScriptRun) MarshalJSON() ([]byte, error) {
	type plain ScriptRun
	return marshalTyped("script_run", plain(v))
}

// MarshalJSON adds the field "type".
func (v KeysMerged) MarshalJSON() ([]byte, error) {
	type plain KeysMerged
	return marshalTyped("merged", plain(v))
}

// MarshalJSON adds the field "type".
func (v ScriptNext) MarshalJSON() ([]byte, error) {
	type plain ScriptNext
	return marshalTyped("script_next", plain(v))
}

// MarshalJSON adds the field "type".
func (v ChildSpawned) MarshalJSON() ([]byte, error) {
	type plain ChildSpawned
	return marshalTyped("spawned", plain(v))
}

// MarshalJSON adds the field "type".
func (v ExtractionStarted) MarshalJSON() ([]byte, error) {
	type plain ExtractionStarted
	return marshalTyped("extracting", plain(v))
}

// MarshalJSON adds the field "type".
func (v SearchRequest) MarshalJSON() ([]byte, error) {
	type plain SearchRequest
	return marshalTyped("searching", plain(v))
}

// MarshalJSON adds the field "type".
func (v SearchDone) MarshalJSON() ([]byte, error) {
	type plain SearchDone
	return marshalTyped("found", plain(v))
}

// MarshalJSON adds the field "type".
func (v Warning) MarshalJSON() ([]byte, error) {
	type plain Warning
	return marshalTyped("warning", plain(v))
}
