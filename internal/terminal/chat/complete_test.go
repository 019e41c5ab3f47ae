package chat

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/llm"
)

// A path that begins with the word comes before one that has it anywhere, and that before one that has only its letters.
func TestHowPathsMatch(t *testing.T) {
	paths := []string{"x/main_test.go", "cmd/run/main.go", "main.go", "m/a/i/n", "other.txt"}
	order := func(word string) (list []string) {
		ranks := map[string]int{}
		for _, path := range paths {
			if rank, ok := matchPath(path, word); ok {
				ranks[path] = rank
				list = append(list, path)
			}
		}
		slices.SortStableFunc(list, func(a, b string) int { return ranks[a] - ranks[b] })
		return list
	}
	for word, want := range map[string][]string{
		"main":     {"main.go", "x/main_test.go", "cmd/run/main.go", "m/a/i/n"},
		"run/main": {"cmd/run/main.go"},
		"mgo":      {"main.go", "x/main_test.go", "cmd/run/main.go"},
		"":         {"main.go", "other.txt", "x/main_test.go", "cmd/run/main.go", "m/a/i/n"},
		"zz":       nil,
	} {
		if got := order(word); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}

func TestWordsThatAreCompleted(t *testing.T) {
	for before, want := range map[string]string{"@": "@", "see @src/a": "@src/a", "see\n@a": "@a", "a@b": "", "@a b": "", "": ""} {
		if word, ok := lastAttachment(before); ok != (want != "") || ok && word != want {
			t.Errorf("%q: %q, %t", before, word, ok)
		}
	}
	found := matchWords([]string{"auto", "dark", "data"}, "da")
	if len(found) != 2 || found[0].Text != "dark" || found[1].Text != "data" {
		t.Errorf("%+v", found)
	}
}

func TestListsOfPaths(t *testing.T) {
	for list, want := range map[string][]string{
		"":                      nil,
		"a b/c":                 {"a", "b/c"},
		`"a b" c`:               {"a b", "c"},
		"a `git diff HEAD` b":   {"a", "`git diff HEAD`", "b"},
		" https://example.com ": {"https://example.com"},
	} {
		if got := splitPaths(list); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
	}
}

// A paste is a file only if all of it is the path of a picture or a document that is there, in one of the forms in which
// terminals write it.
func TestPastesThatAreFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.png", "b c.pdf", "d.txt"} {
		testfile.WriteFile(t, filepath.Join(dir, name), "x")
	}
	if err := os.Mkdir(filepath.Join(dir, "e.png"), 0o700); err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	type paste struct{ text, path string } // path "": it is a text
	pastes := []paste{
		{at("a.png"), at("a.png")},
		{" " + at("a.png") + "\n", at("a.png")},
		{"a.png", "a.png"},
		{"'" + at("b c.pdf") + "'", at("b c.pdf")},
		{`"` + at("b c.pdf") + `"`, at("b c.pdf")},
		{at("d.txt"), ""},
		{at("e.png"), ""},
		{at("missing.png"), ""},
		{"see " + at("a.png"), ""},
		{at("a.png") + "\n" + at("b c.pdf"), ""},
		{"", ""},
		{"file://", ""},
		{"file://elsewhere" + at("a.png"), ""},
	}
	if runtime.GOOS != "windows" {
		pastes = append(pastes,
			paste{filepath.Join(dir, `b\ c.pdf`), at("b c.pdf")},
			paste{"file://" + at("a.png"), at("a.png")},
			paste{"file://localhost" + filepath.Join(dir, "b%20c.pdf"), at("b c.pdf")},
		)
	}
	for _, p := range pastes {
		if path, ok := pastedFile(config.Dirs{Work: dir}, p.text); ok != (p.path != "") || ok && path != p.path {
			t.Errorf("%q: %q, %t", p.text, path, ok)
		}
	}
}

func TestMediaOfFiles(t *testing.T) {
	picture := llm.Image{MIME: "image/png", Data: []byte("a")}
	other := llm.Image{MIME: "image/png", Data: []byte("b")}
	media := mediaOf([]attach.File{{Media: picture}, {}, {Media: other}, {Media: picture}})
	if len(media) != 2 {
		t.Errorf("%+v", media)
	}
}

// The programs that read the clipboard, by system: each is tried only where it can work.
func TestReadersOfTheClipboard(t *testing.T) {
	names := func(system string) (list []string) {
		for _, r := range listClipboardReaders(system) {
			list = append(list, r.program+" "+r.needs)
		}
		return list
	}
	wayland, x := "wl-paste WAYLAND_DISPLAY", "xclip DISPLAY"
	for system, want := range map[string][]string{
		"darwin":  {"pngpaste "},
		"windows": {"powershell.exe "},
		"linux":   {wayland, x, wayland, x, "powershell.exe WSL_DISTRO_NAME"},
	} {
		if got := names(system); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", system, got, want)
		}
	}
}
