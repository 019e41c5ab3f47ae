package runs

import (
	"strings"
	"testing"
)

// The meter counts replies by their models, calls by their tools, and appends, from its start on.
func TestMeter(t *testing.T) {
	a, _, st := openCounted(t)
	parkRuns(t, st, 1)
	m, err := a.StartMeter()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.StartMeter(); again != m || err != nil {
		t.Errorf("another meter: %v", err)
	}
	recorded := recordRuns(t)
	for _, thread := range []string{"counter", "team"} {
		if err := st.Append(t.Context(), thread, 0, recorded[thread]); err != nil {
			t.Fatal(err)
		}
	}
	_ = st.Append(t.Context(), "team", 0, recorded["team"]) // refused
	var b strings.Builder
	m.Appends.WriteText(&b, "appends", "")
	m.Models.WriteText(&b, "models", "model")
	m.Tools.WriteText(&b, "tools", "tool")
	for _, want := range []string{"appends_count 2\n", "models_count{model=", "tools_count{tool="} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in\n%.2000s", want, &b)
		}
	}
}
