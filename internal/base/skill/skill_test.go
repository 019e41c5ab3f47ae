package skill

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testfile"
)

func TestReadSkills(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"notes/SKILL.md":    "---\nname: notes\ndescription: >-\n  Writes notes.\n  Use it for changelogs.\nlicense: MIT\n---\n\nDo it.\n",
		"colon/SKILL.md":    "---\r\ndescription: Use when: the user asks\r\n---\r\nText",
		"long/SKILL.md":     "---\ndescription: " + strings.Repeat("ä", 2000) + "\n---\n",
		"headless/SKILL.md": "# No head\n",
		"blank/SKILL.md":    "---\nname: blank\n---\ntext",
		"other/README.md":   "no skill",
		"file.md":           "no folder",
	})
	found, problems := ReadSkills("", dir)
	var names []string
	for _, s := range found {
		names = append(names, s.Name+": "+s.Description[:min(40, len(s.Description))])
	}
	if want := []string{"colon: Use when: the user asks", "long: " + strings.Repeat("ä", 20), "notes: Writes notes. Use it for changelogs."}; !slices.Equal(names, want) {
		t.Errorf("found %q, want %q", names, want)
	}
	if len(problems) != 2 || !strings.Contains(problems[0].Error(), "blank/SKILL.md: the head has no description") || !strings.Contains(problems[1].Error(), "headless/SKILL.md: the head is missing") {
		t.Errorf("problems %q", problems)
	}
	if found, problems := ReadSkills("", filepath.Join(dir, "nothing")); found != nil || problems != nil {
		t.Errorf("a directory that does not exist: %v %v", found, problems)
	}
}

// A skill reads its own files, and nothing outside of its folder.
func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"secret.txt": "secret", "notes/SKILL.md": "---\ndescription: d\n---\nBody\n---\nmore", "notes/references/style.md": "Style.", "notes/data.bin": "\xff\xfe",
		"notes/large.txt": strings.Repeat("x", largestFile+1), "notes/.git/config": "c",
	})
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), filepath.Join(dir, "notes", "link.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("references/style.md", filepath.Join(dir, "notes", "own.md")); err != nil {
		t.Fatal(err)
	}
	s := Skill{Name: "notes", Dir: filepath.Join(dir, "notes")}
	body, files, err := s.ReadBody()
	if want := []string{"data.bin", "large.txt", "link.txt", "own.md", "references/style.md"}; err != nil || body != "Body\n---\nmore" || !slices.Equal(files, want) {
		t.Errorf("%q, files %q, %v", body, files, err)
	}
	for _, path := range []string{"references/style.md", "own.md"} {
		if text, err := s.ReadFile(path); err != nil || text != "Style." {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
	for path, want := range map[string]string{
		"../secret.txt": "cannot be read", filepath.Join(dir, "secret.txt"): "cannot be read", "link.txt": "cannot be read", "references": "is a directory", "none.md": "has no file",
		"data.bin": "is not text", "large.txt": "at most",
	} {
		if text, err := s.ReadFile(path); err == nil || !strings.Contains(err.Error(), want) || text != "" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
	}
}

// A skill may bring tools and servers: as a list or as a text with commas, also next to a description that is not YAML.
func TestSkillTools(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	testfile.WriteFiles(t, dir, map[string]string{
		"list/SKILL.md":  "---\ndescription: d\nenabled_tools:\n  - fs_read\n  - fs_ls\nenabled_mcp_servers: [forge]\n---\n",
		"text/SKILL.md":  "---\ndescription: Use when: asked\nenabled_tools: fs_read, , fs_ls, fs_read\nenabled_mcp_servers:\n---\n",
		"wrong/SKILL.md": "---\ndescription: d\nenabled_tools: {fs_read: true}\n---\n",
	})
	found, problems := ReadSkills("", dir)
	if len(found) != 2 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "wrong/SKILL.md: the head cannot be read, and it names tools") {
		t.Fatalf("found %v, problems %v", found, problems)
	}
	for i, servers := range [][]string{{"forge"}, nil} {
		if s := found[i]; !slices.Equal(s.Tools, []string{"fs_read", "fs_ls"}) || !slices.Equal(s.Servers, servers) || s.Description == "" {
			t.Errorf("%s: tools %q, servers %q, description %q", s.Name, s.Tools, s.Servers, s.Description)
		}
	}
}
