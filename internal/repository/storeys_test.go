package repository_test

import (
	"os"
	"strings"
	"testing"
)

// storeysBegin begins the picture of the storeys in ARCHITECTURE.md.
const storeysBegin = "```text storeys\n"

// A storey is a line of the picture: directories whose packages stand on the lines below.
type storey struct {
	dirs  []string
	about string
}

// readStoreys returns the storeys of the picture in ARCHITECTURE.md, from the ground up.
func readStoreys(t *testing.T) (storeys []storey) {
	t.Helper()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, picture, _ := strings.Cut(string(text), storeysBegin)
	picture, _, ok := strings.Cut(picture, "```")
	if !ok {
		t.Fatalf("ARCHITECTURE.md has no picture that begins with %q", storeysBegin)
	}
	for line := range strings.Lines(picture) {
		dirs, about, ok := strings.Cut(strings.TrimSpace(line), "  ")
		if !ok {
			t.Fatalf("ARCHITECTURE.md: the line %q of the storeys does not say what lives there: two blanks, and then a sentence", line)
		}
		storeys = append([]storey{{strings.Split(dirs, ", "), strings.TrimSpace(about)}}, storeys...)
	}
	return storeys
}

// findStorey returns the number of the storey in which a package lies, counted from the ground: that of the longest directory. ok is false if it lies in none.
func findStorey(storeys []storey, name string) (number int, ok bool) {
	longest := ""
	for i, s := range storeys {
		for _, dir := range s.dirs {
			if lies(name, dir) && len(dir) > len(longest) {
				longest, number, ok = dir, i, true
			}
		}
	}
	return number, ok
}

// Imports lead downwards: a package imports what lies in its own storey or below.
func TestStoreys(t *testing.T) {
	storeys := readStoreys(t)
	inhabited := map[int]bool{}
	for _, p := range packages(t) {
		from, ok := findStorey(storeys, p.name)
		if !ok {
			t.Errorf("package %s lies in no storey of ARCHITECTURE.md", p.name)
			continue
		}
		inhabited[from] = true
		for imported, place := range p.imports(t) {
			name, inModule := strings.CutPrefix(imported, modulePath+"/")
			if to, ok := findStorey(storeys, name); inModule && ok && to > from {
				t.Errorf("%s: %s may not import %s, which is above it (%s over %s): move what is needed down, or hand it in",
					place, p.name, name, strings.Join(storeys[to].dirs, ", "), strings.Join(storeys[from].dirs, ", "))
			}
		}
	}
	for i, s := range storeys {
		if !inhabited[i] || s.about == "" {
			t.Errorf("ARCHITECTURE.md: the storey %v is empty, or says nothing", s.dirs)
		}
	}
}
