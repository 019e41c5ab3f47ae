package app

import (
	"encoding/json"
	"errors"
	"fmt"

	"raddle.dev/flow"
)

// Record is what a run keeps of its start, so that it can be shown and continued
// without the command that started it. It holds no secrets of the configuration.
type Record struct {
	Agent      string            `json:"agent"`
	Dir        string            `json:"dir"`        // absolute
	Definition string            `json:"definition"` // text of graph.yaml
	Sources    []flow.Source     `json:"sources"`    // every file that the run depends on
	Prompt     string            `json:"prompt"`
	Files      []string          `json:"files,omitempty"`     // absolute; their text is in the prompt
	Model      string            `json:"model,omitempty"`     // for graphs that name none
	Override   string            `json:"override,omitempty"`  // in place of every model
	Variables  map[string]string `json:"variables,omitempty"` // set by the caller
	Workspace  string            `json:"workspace"`           // the caller's working directory
	Version    string            `json:"version"`             // of raddle

	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	NoSpawn     bool     `json:"no_spawn,omitempty"`
	Headless    bool     `json:"headless,omitempty"` // nobody will ever be asked

	// Overrides are the variables of the environment that replaced values of the
	// agent or of one below it. nil: an earlier version did not record them.
	Overrides map[string]string `json:"overrides"`

	Strict bool `json:"strict,omitempty"`
}

func (r *Record) encode() ([]byte, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("the run's start record: %w", err)
	}
	return b, nil
}

var errForeign = errors.New("it was not started by raddle's command line")

func decodeRecord(meta []byte) (*Record, error) {
	var r Record
	if len(meta) == 0 {
		return nil, errForeign
	}
	if err := json.Unmarshal(meta, &r); err != nil || r.Dir == "" {
		return nil, errForeign
	}
	return &r, nil
}
