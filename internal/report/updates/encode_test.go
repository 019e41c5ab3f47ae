package updates

import (
	"encoding/json"
	"testing"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

// A value that JSON cannot represent is a warning in its place, with the envelope of the event.
func TestEncodeEvent(t *testing.T) {
	for name, c := range map[string]struct {
		value any
		want  string
	}{
		"a value":          {"said", `{"seq":2,"time":"0001-01-01T00:00:00Z","run":"r","step":0,"node":"n","kind":"emitted","data":"said"}`},
		"broken arguments": {agent.ToolStarted{ID: "c", Args: json.RawMessage("{")}, ""},
		"a function":       {func() {}, ""},
	} {
		line := EncodeEvent(graph.Event{Seq: 2, Run: "r", Node: "n", Body: graph.ValueEmitted{Value: c.value}})
		if c.want != "" && string(line) != c.want {
			t.Errorf("%s: %s, want %s", name, line, c.want)
		}
		var got struct {
			Seq       int64
			Run, Node string
			Data      json.RawMessage
		}
		if err := json.Unmarshal(line, &got); err != nil || got.Seq != 2 || got.Run != "r" || got.Node != "n" {
			t.Errorf("%s: %v in %s", name, err, line)
		}
		var warning agent.Warning
		if err := json.Unmarshal(got.Data, &warning); c.want == "" && (err != nil || warning.Text == "") {
			t.Errorf("%s: no warning in %s", name, line)
		}
	}
}
