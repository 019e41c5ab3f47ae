package wire

import (
	"encoding/json"

	"raddle.dev/internal/base/toolschema"
	"raddle.dev/llm"
)

// RepairTools returns tools with schemas that every provider accepts. What such a schema cannot say is in the
// description. A tool whose schema cannot be repaired takes any arguments: the tool itself checks them.
func RepairTools(tools []llm.ToolSpec) []llm.ToolSpec {
	list := make([]llm.ToolSpec, len(tools))
	for i, t := range tools {
		list[i] = repairTool(t)
	}
	return list
}

func repairTool(t llm.ToolSpec) llm.ToolSpec {
	if len(t.Schema) == 0 {
		return t
	}
	r, err := toolschema.Repair(t.Schema)
	if err != nil {
		r.Schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	t.Schema = r.Schema
	t.Description = r.AddNote(t.Description)
	return t
}
