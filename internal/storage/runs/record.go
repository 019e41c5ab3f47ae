package runs

import (
	"cmp"
	"encoding/json"
	"errors"
	"path/filepath"
	"time"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/storage/attach"
)

// Record is what a run saves about its start, so that it can be shown and continued
// without the command that started it.
type Record struct {
	Agent string `json:"agent"`
	Dir   string `json:"dir"` // absolute
	Recorded

	Prompt string `json:"prompt"`
	// Files are absolute paths; their text is in the prompt, or they are Attached.
	Files []string `json:"files,omitempty"`
	// Attached are pictures and documents, whose bytes are in the input of the run.
	Attached []attach.Attachment `json:"attached,omitempty"`
	Model    string              `json:"model,omitempty"`    // for graphs that do not name a model
	Override string              `json:"override,omitempty"` // replaces every model
	// Templates replace templates of prompts, by node of graph.yaml; a fork sets them.
	Templates map[string]string `json:"templates,omitempty"`
	Variables map[string]string `json:"variables,omitempty"` // set by the caller; without secrets
	Workspace string            `json:"workspace"`           // the caller's working directory
	Version   string            `json:"version"`             // of raddle

	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	NoSpawn     bool     `json:"no_spawn,omitempty"`
	Headless    bool     `json:"headless,omitempty"` // no person will ever be asked

	// Overrides are the variables of the environment that replaced values of the
	// agent or of one below it. It is nil if an earlier version did not record them.
	Overrides map[string]string `json:"overrides"`

	// VariablesFrom maps a variable that is a secret to the variable of the
	// environment that had its value.
	VariablesFrom map[string]string `json:"variables_from,omitempty"`

	// Bundle is the hash of the bundle of the agent's files in the store, if the store had it when the run started.
	Bundle string `json:"bundle,omitempty"`
	// Approved are the directories of the bundle whose scripts the user had approved then.
	Approved []string `json:"approved,omitempty"`

	Limits

	Strict bool   `json:"strict,omitempty"`
	Mode   string `json:"mode,omitempty"` // the permission mode at the start; empty: edits

	Distribution

	Beginning
}

// Limits are what a run may use.
type Limits struct {
	// Budget limits what the run may spend, in addition to what its agent says; nil: nothing does.
	Budget *agent.Limits `json:"budget,omitempty"`
	// Deadline is when the run is ended, also while it waits; zero: never.
	Deadline time.Time `json:"deadline,omitzero"`
}

// Beginning says what started a run.
type Beginning struct {
	// TraceParent names the span of what started the run, as the header traceparent does.
	TraceParent string `json:"trace_parent,omitempty"`

	// Via is what started the run: "terminal", "api", the name of a protocol, or "trigger NAME"; "": it is not known. By is
	// the name of the person or of the token that a server started it for.
	Via string `json:"via,omitempty"`
	By  string `json:"by,omitempty"`
}

// Recorded is what the agent of a run was when the run started.
type Recorded struct {
	Definition string `json:"definition"` // text of graph.yaml
	// Definitions are the texts of the files of agents below it, by their path in Sources.
	Definitions map[string]string `json:"definitions,omitempty"`
	Sources     []flow.Source     `json:"sources"` // every file that the run depends on
	// Picture is the graph as people know it, without secrets; nil: an earlier version wrote the record, or it would be
	// too large.
	Picture *graph.Structure `json:"picture,omitempty"`
}

// Distribution says what a run has to do with runs of other machines.
type Distribution struct {
	// Remote says that nodes with a queue wait for runs of their own, which something starts elsewhere.
	Remote bool `json:"remote,omitempty"`

	// Parent is the run that waits for this one, and its question; nil: there is none. Input is what it gets from
	// there, without its prompt and state.
	Parent *Parent           `json:"parent,omitempty"`
	Input  *flow.RemoteInput `json:"input,omitempty"`
	// Named is the directory of the agent that a person named, if this run is part of the work of another one: only
	// that agent, and those that belong to it, are trusted for that.
	Named string `json:"named,omitempty"`
}

// Parent is a run that waits for another one.
type Parent struct {
	Run      string `json:"run"`
	Question string `json:"question"`
}

// IsGraph reports whether the run's own agent is a graph.
func (r *Record) IsGraph() bool {
	return len(r.Sources) > 0 && filepath.Base(r.Sources[0].Path) == "graph.yaml"
}

// NamedDir returns the directory of the agent that a person named.
func (r *Record) NamedDir() string { return cmp.Or(r.Named, r.Dir) }

var errForeign = errors.New("it was not started by raddle's command line")

func DecodeRecord(meta []byte) (*Record, error) {
	var r Record
	if len(meta) == 0 {
		return nil, errForeign
	}
	if err := json.Unmarshal(meta, &r); err != nil || r.Dir == "" {
		return nil, errForeign
	}
	return &r, nil
}
