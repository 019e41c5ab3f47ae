package permission

import (
	"os"
	"path/filepath"
	"testing"
)

// TestContentOfCommands compares digests of what commands run: files of the workspace, and of a description of a
// package only its scripts.
func TestContentOfCommands(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "w")
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(base, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(base, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	contents := func() (list []string) {
		for _, words := range [][]string{{"npm", "test"}, {"npm"}, {"python3", "package.json"}, {"./run"}, {dir + "/run"}, {base + "/outside"}, {"../outside"}, {"ls", "run"}, {"make"}} {
			var all []word
			for _, w := range words {
				all = append(all, literalWord(w))
			}
			s := shellAnalyzer{area: area{workspace: dir}, dirs: []string{dir}}
			dirs, content := s.contentOf(all)
			if len(dirs) != 1 || dirs[0] != dir {
				t.Error(words, dirs)
			}
			list = append(list, content)
			for what, s := range map[string]shellAnalyzer{
				"lost": {area: s.area, dirs: s.dirs, lost: true}, "declares": {area: s.area, dirs: s.dirs}, "no directory": {area: s.area},
			} {
				if what == "declares" {
					s.declares = true
				}
				if dirs, content := s.contentOf(all); dirs != nil || content != "" {
					t.Errorf("%s: %s: %q %q", words, what, dirs, content)
				}
			}
		}
		return list
	}
	changes := func(name, text string, want ...bool) {
		t.Helper()
		before := contents()
		write(name, text)
		for i, now := range contents() {
			if (now != before[i]) != want[i] {
				t.Errorf("%s: content %d changes: %t", name, i, now != before[i])
			}
		}
	}
	write("w/package.json", `{"scripts":{"a":"b"},"version":"1"}`)
	write("w/run", "1")
	write("outside", "1")
	if list := contents(); list[5] != "" || list[6] == "" || list[7] != "" || list[8] != "" || list[0] == "" || list[0] != list[1] {
		t.Errorf("%q", list)
	}
	changes("w/package.json", `{"scripts":{"a":"b"},"version":"2"}`, false, false, true, false, false, false, false, false, false)
	changes("w/package.json", `{"scripts":{"a":"c"},"version":"2"}`, true, true, true, false, false, false, false, false, false)
	changes("w/run", "2", false, false, false, true, true, false, false, false, false)
	changes("outside", "2", false, false, false, false, false, false, true, false, false)
	changes("w/Makefile", "2", false, false, false, false, false, false, false, false, true)
}
