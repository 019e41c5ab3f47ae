package updates

import (
	"encoding/json"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// EncodeEvent returns an event as programs get it: one line of JSON, without a line feed. A body with a value that JSON
// cannot represent is replaced by an [agent.Warning] with the reason, so that the events after it still come.
func EncodeEvent(ev graph.Event) []byte {
	line, err := json.Marshal(ev)
	if err != nil {
		ev.Body = graph.ValueEmitted{Value: agent.Warning{Text: err.Error()}}
		line, _ = json.Marshal(ev)
	}
	return line
}
