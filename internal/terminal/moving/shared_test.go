package moving

import (
	"strings"
	"testing"

	"raddle.dev/internal/process/fetchagent"
	"raddle.dev/internal/testkit/testfile"
)

// What others share is taken with a file that says where it is from, and the list says what may run.
func TestShared(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"agents/one/graph.yaml":   "name: one\n",
		"agents/one/tools.sh":     "#!/bin/sh\n",
		"agents/one/.env":         "TOKEN=x",
		"agents/none/README.md":   "x",
		"skills/s/SKILL.md":       "---\ndescription: d\n---\n",
		"roles/r.md":              "x",
		"commands/c.md":           "x",
		"functions/tools/look.sh": "#!/bin/sh\n",
	})
	to := newTarget(t)
	from := fetchagent.Origin{Address: "https://example.org/kit.git", Pin: "0123", Name: "kit", Dir: dir}
	p := Program{Name: from.Address, read: func(r *reader) { r.readShared(from) }}
	plan := &Plan{Things: p.readHome(to.Dirs, dir).things}
	plan.settleAll(to, false)
	if failed := plan.Write(to); failed > 0 {
		t.Fatal(plan.Text(false))
	}
	var got []string
	for _, thing := range plan.Things {
		got = append(got, string(thing.Verdict)+" "+thing.Kind+" "+thing.Name)
		if thing.Name == "one" && (!strings.Contains(thing.Why, "it may run 1 program: tools.sh") || !strings.Contains(thing.Why, "without .env")) {
			t.Errorf("one: %s", thing.Why)
		}
	}
	wantLines(t, got, `
		changed agent one
		taken command c
		taken role r
		taken skill s
		taken tool look.sh`)
	if text := readWritten(t, to, "agents/one/.origin"); text != "https://example.org/kit.git\n0123\n" {
		t.Errorf("%q", text)
	}
	testfile.WriteFiles(t, dir, map[string]string{"config.yaml": "name: whole\n"})
	if whole := p.readHome(to.Dirs, dir).things; len(whole) != 1 || whole[0].Name != "kit" {
		t.Errorf("an agent at the top: %+v", whole)
	}
}
