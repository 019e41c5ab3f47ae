package dataset

import (
	"maps"
	"slices"
	"strings"
)

// The fields of an item.
const (
	keyID        = "id"
	keyPrompt    = "prompt"
	keyState     = "state"
	keyVariables = "variables"
	keyFiles     = "files"
	keyExpect    = "expect"
	keyTags      = "tags"
	keyFrom      = "from"
	keyMetadata  = "metadata"
)

// otherNames are the names that the data sets of other programs have for the fields of an item: promptfoo, LangSmith,
// Langfuse, Inspect, the evals of OpenAI, and the usual columns of public sets of questions.
var otherNames = map[string]string{
	"input":    keyPrompt,
	"inputs":   keyPrompt,
	"question": keyPrompt,
	"query":    keyPrompt,

	"expected":          keyExpect,
	"expected_output":   keyExpect,
	"expectedOutput":    keyExpect,
	"__expected":        keyExpect,
	"output":            keyExpect,
	"outputs":           keyExpect,
	"reference":         keyExpect,
	"reference_output":  keyExpect,
	"reference_outputs": keyExpect,
	"answer":            keyExpect,
	"target":            keyExpect,
	"ideal":             keyExpect,
	"ground_truth":      keyExpect,

	"vars":          keyVariables,
	"initial_state": keyState,
	"__description": keyID,
}

// fields are the fields of an item.
var fields = []string{keyID, keyPrompt, keyState, keyVariables, keyFiles, keyExpect, keyTags, keyFrom, keyMetadata}

// allNames are the names of fields that a file may have.
var allNames = slices.Sorted(maps.Keys(fieldNames()))

func fieldNames() map[string]string {
	all := maps.Clone(otherNames)
	for _, name := range fields {
		all[name] = name
	}
	return all
}

// fieldOf returns the field that a name means; "": none.
func fieldOf(name string) string { return fieldNames()[name] }

// columnParts are the fields whose members may be columns of their own, as variables.lang, and how promptfoo begins the
// names of such columns.
var columnParts = map[string]string{
	keyState + ".":     keyState,
	keyVariables + ".": keyVariables,
	keyMetadata + ".":  keyMetadata,
	"__metadata:":      keyMetadata,
}

// splitColumn returns the field and the member that the name of a column means. member is "" if it means the field.
// field is "" if it means nothing.
func splitColumn(name string) (field, member string) {
	for prefix, of := range columnParts {
		if member, ok := strings.CutPrefix(name, prefix); ok && member != "" {
			return of, member
		}
	}
	return fieldOf(name), ""
}
