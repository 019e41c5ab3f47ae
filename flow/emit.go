package flow

// These are the values that nodes emit while they run, as [graph.ValueEmitted]
// events, in addition to those of package agent.
type (
	// ModelCall says that a model is about to be called. Active reports whether
	// the node names no model of its own.
	ModelCall struct {
		Model  string   `json:"model,omitempty"`
		Active bool     `json:"active,omitempty"`
		Tools  []string `json:"tools,omitempty"`
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
	// NodeFailed says that a node failed and the run continues on its route for failures. The reason is
	// the one that the journal has, without its causes.
	NodeFailed struct {
		Reason string `json:"reason"`
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
)

// EventType returns "model_call".
func (ModelCall) EventType() string { return "model_call" }

// EventType returns "script_run".
func (ScriptRun) EventType() string { return "script_run" }

// EventType returns "merged".
func (KeysMerged) EventType() string { return "merged" }

// EventType returns "script_next".
func (ScriptNext) EventType() string { return "script_next" }

// EventType returns "node_failed".
func (NodeFailed) EventType() string { return "node_failed" }

// EventType returns "spawned".
func (ChildSpawned) EventType() string { return "spawned" }

// EventType returns "extracting".
func (ExtractionStarted) EventType() string { return "extracting" }

// EventType returns "searching".
func (SearchRequest) EventType() string { return "searching" }

// EventType returns "found".
func (SearchDone) EventType() string { return "found" }
