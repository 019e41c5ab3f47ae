package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/testkit/testfile"
)

// A role is an agent, which is written again when its file has changed and when the cache was emptied.
func TestRoleIsAnAgent(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"config/roles/poet.md":             "Write verse.\n",
		"config/roles/helper.md":           "I am a role.\n",
		"config/agents/helper/config.yaml": "name: helper\n",
		"config/roles/.hidden.md":          "x",
	})
	env := []string{"RADDLE_CONFIG_DIR=" + filepath.Join(dir, "config"), "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "XDG_STATE_HOME=" + filepath.Join(dir, "state"), "HOME=" + dir}
	p, err := Open(Options{Environ: env, Work: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for name, want := range map[string]string{"poet": "roles/poet", "role:poet": "roles/poet", "helper": "agents/helper", "role:helper": "roles/helper"} {
		place, err := p.FindAgent(name)
		if err != nil || !strings.HasSuffix(filepath.ToSlash(place.Dir), want) || place.Name != filepath.Base(want) {
			t.Errorf("%s: %+v, %v", name, place, err)
		}
	}
	for _, name := range []string{"role:", "role:nothing", "role:../poet", "role:.hidden", "nothing"} {
		if place, err := p.FindAgent(name); err == nil {
			t.Errorf("%s: %+v", name, place)
		}
	}
	testfile.WriteFiles(t, dir, map[string]string{"config/roles/poet.md": "Write prose.\n"})
	place, err := p.FindAgent("role:poet")
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(filepath.Join(place.Dir, "config.yaml")); !strings.Contains(string(text), "prose") {
		t.Errorf("the changed role is\n%s", text)
	}
	if err := os.RemoveAll(place.Dir); err != nil {
		t.Fatal(err)
	}
	if err := p.relocateAgent("id", &runs.Record{Agent: "poet", Dir: place.Dir}, ""); err != nil {
		t.Error(err)
	}
	if list := p.ListRoles(); len(list) != 2 || list[0].Name != "helper" {
		t.Errorf("%+v", list)
	}
}
