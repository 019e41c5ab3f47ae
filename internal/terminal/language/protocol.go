package language

// The types of this file are those of the Language Server Protocol 3.17, as far as the server needs them. Their fields
// are as the specification names them.

// Location is a range of a file.
type Location struct {
	URI   string `json:"uri"`
	Range Range  `json:"range"`
}

// Diagnostic is a finding in a document.
type Diagnostic struct {
	Range    Range    `json:"range"`
	Severity int      `json:"severity"` // 1 error, 2 warning, 3 information
	Code     string   `json:"code,omitempty"`
	Source   string   `json:"source"`
	Message  string   `json:"message"`
	Data     *FixData `json:"data,omitempty"`
}

// FixData is what a code action needs to know of a diagnostic.
type FixData struct {
	Replace string `json:"replace"` // what to write in place of the range
}

// Published are the diagnostics of one document.
type Published struct {
	URI         string       `json:"uri"`
	Version     *int         `json:"version,omitempty"`
	Diagnostics []Diagnostic `json:"diagnostics"`
}

// TextEdit replaces a range of a document.
type TextEdit struct {
	Range   Range  `json:"range"`
	NewText string `json:"newText"`
}

// DocumentEdit is the edits of one document at a version.
type DocumentEdit struct {
	TextDocument VersionedDocument `json:"textDocument"`
	Edits        []TextEdit        `json:"edits"`
}

// VersionedDocument names a document; its version is null if no editor has it open.
type VersionedDocument struct {
	URI     string `json:"uri"`
	Version *int   `json:"version"`
}

// WorkspaceEdit is what a rename or an action changes.
type WorkspaceEdit struct {
	DocumentChanges []DocumentEdit `json:"documentChanges"`
}

// Markup is text for people.
type Markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// Hover is what an editor shows about a place.
type Hover struct {
	Contents Markup `json:"contents"`
	Range    *Range `json:"range,omitempty"`
}

// Completion is one proposal.
type Completion struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *Markup   `json:"documentation,omitempty"`
	SortText      string    `json:"sortText,omitempty"`
	TextEdit      *TextEdit `json:"textEdit,omitempty"`
}

// Kinds of completions, as the protocol numbers them.
const (
	kindField    = 5
	kindVariable = 6
	kindModule   = 9
	kindValue    = 12
	kindFile     = 17
	kindNode     = 18 // a reference
	kindFunction = 3
)

// Symbol is an entry of the outline of a document.
type Symbol struct {
	Name           string   `json:"name"`
	Detail         string   `json:"detail,omitempty"`
	Kind           int      `json:"kind"`
	Range          Range    `json:"range"`
	SelectionRange Range    `json:"selectionRange"`
	Children       []Symbol `json:"children,omitempty"`
}

// CodeAction is a change that an editor offers.
type CodeAction struct {
	Title       string        `json:"title"`
	Kind        string        `json:"kind"`
	Diagnostics []Diagnostic  `json:"diagnostics,omitempty"`
	IsPreferred bool          `json:"isPreferred,omitempty"`
	Edit        WorkspaceEdit `json:"edit"`
}
