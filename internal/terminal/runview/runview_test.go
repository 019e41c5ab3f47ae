package runview

import (
	"strings"
	"testing"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/report/overview"
)

// The id of a run is of use only as a whole: on a narrow terminal the agent and the prompt are cut, and so are the names
// of parts.
func TestNarrowList(t *testing.T) {
	const id = "1m8kver8fda9rh3gj0f8"
	rows := []Row{{
		id:      id,
		agent:   "assistant -s holidays",
		status:  "✓ done",
		started: "12m ago",
		took:    "1.2 s",
		what:    "“Where to?”",
	}}
	rows = AppendBranches(rows, &overview.Branch{Children: []overview.Branch{{
		Path:   "team/agent_explore_00000001",
		Agent:  "explore",
		Status: "completed",
	}}}, 0)
	table := term.NewTable(Columns...)
	for _, r := range rows {
		table.AddRow(r)
	}
	got := table.Format(60)
	want := `
RUN                   AGENT   STATUS  STARTED  TOOK   COST …
1m8kver8fda9rh3gj0f8  assis…  ✓ done  12m ago  1.2 s       …
  - explore (agent_…  explo…  compl…
`
	if got != strings.TrimPrefix(want, "\n") {
		t.Errorf("%s\nwant%s", got, want)
	}
	if wide := table.Format(120); !strings.Contains(wide, id+"                  assistant -s holidays  ✓ done     12m ago  1.2 s        “Where to?”") {
		t.Error(wide)
	}
}
