package spec

import (
	"slices"

	"raddle.dev/flow/hook"
	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
)

// File is a graph.yaml that has been read: its fields with defaults filled in,
// and their positions. It does not change after Parse.
type File struct {
	Path        string // as given to Parse
	Name        string
	Description string
	Version     string
	// of llm nodes; without retry_patience a failed request is only repeated as max_attempts says
	Sampling
	WorkingDir           string // of script nodes that do not set it; empty: WorkingDirCaller
	GlobalTools          []string
	MCPServers           []string
	ConversationStarters []string
	Skills               Skills
	Hooks                []hook.Hook
	Lifecycle
	Variables    []Variable
	Settings     Settings
	InitialState *jsonvalue.Object
	Reducers     []KeyReducer // in file order
	Start        string
	Budget       *Budget // of everything that runs in the graph together; nil: none
	Finally      string  // id of the node that runs when a run ends without being done; "": none
	Nodes        []*Node // in file order
	Kinds        Kinds   // that nodes may have

	// Findings are the warnings of Parse: unknown keys, and values that were
	// changed.
	Findings []strictyaml.Finding

	FileText
	ByID          map[string]*Node
	ReducersByKey map[string]string
}

// Lifecycle is what starts runs by itself, and what changes runs that earlier forms of the file have started.
type Lifecycle struct {
	Triggers   []Trigger
	Migrations []Migration
}

// FileText is the text of a file, and the positions of its fields.
type FileText struct {
	Text           []byte
	Source         strictyaml.Mapping
	SettingsSource strictyaml.Mapping
}

// Settings is the settings block of a graph.
type Settings struct {
	MaxLoopIterations int                 // visits of one node; 0 rejects the first node
	Timeout           *strictyaml.Seconds // of the whole run; nil: none
	MaxConcurrency    int                 // branches of a super-step at a time
	LogStateSnapshots bool
	ValidateBeforeRun bool
}

// Variable is an agent variable that the caller may set.
type Variable struct {
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Default     *string `json:"default,omitempty"` // nil: the caller must set it
}

// KeyReducer names the reducer of one key of the state.
type KeyReducer struct {
	Key     string
	Reducer string
}

// Update is one entry of state_updates.
type Update struct {
	Key   string
	Value Template
}

// Route is one entry of an approval's routes.
type Route struct {
	Answer string
	Target string
}

// Node returns the node with an id, or nil if there is none.
func (f *File) Node(id string) *Node { return f.ByID[id] }

// Reducer returns the name of a key's reducer, or "" if it has none.
func (f *File) Reducer(key string) string { return f.ReducersByKey[key] }

// Entries returns the ids of the nodes to which no other node needs to lead: the start, and the node of finally if there
// is one.
func (f *File) Entries() []string {
	if f.Finally == "" {
		return []string{f.Start}
	}
	return []string{f.Start, f.Finally}
}

// CanSpawn reports whether the models of the graph may spawn agents.
func (f *File) CanSpawn() bool {
	return slices.ContainsFunc(f.Nodes, func(n *Node) bool { return n.Type.Spawns })
}

// At returns the position of a top-level field's value, or the top of the file
// if the field is missing.
func (f *File) At(field string) strictyaml.Pos { return f.Source.FieldPosition(field) }

// PromptKey is the key of the caller's text.
const PromptKey = "initial_prompt"
