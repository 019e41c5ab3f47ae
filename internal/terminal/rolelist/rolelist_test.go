package rolelist

import (
	"strings"
	"testing"

	"raddle.dev/internal/process/agentfile"
)

// The list and one role say what a person needs to know.
func TestTexts(t *testing.T) {
	if text := DescribeRows(nil, "~/roles"); !strings.Contains(text, "no roles in ~/roles") {
		t.Error(text)
	}
	role := agentfile.ReadRole("poet", []byte("---\nmemory: true\n---\nWrite verse."))
	if text := DescribeRows(ListRows([]agentfile.Role{role}), ""); !strings.Contains(text, "poet  Write verse.") {
		t.Error(text)
	}
	shown, err := ShowRole(role)
	if want := "# memory has no effect\nname: poet\ndescription: Write verse.\ninstructions: Write verse."; err != nil || shown.Text() != want {
		t.Errorf("%q, %v", shown.Text(), err)
	}
}
