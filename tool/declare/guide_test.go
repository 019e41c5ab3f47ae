package declare

import (
	"os"
	"regexp"
	"testing"
)

func TestGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/tools.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"bash":   "tools(sku! string, warehouse string north|south, max_rows integer, tag array[string], verbose boolean)",
		"python": "book_room(city! string, nights integer, kinds array[string], tier string low|high)",
		"ts":     "find(query! string, format string json|csv, tags array[string])",
	}
	effects := map[string]string{"bash": "read-only", "python": "idempotent", "ts": "read-only"}
	for _, block := range regexp.MustCompile("(?s)```(bash|python|ts)\n(.*?)```").FindAllSubmatch(guide, -1) {
		language := string(block[1])
		parse := map[string]func(string, []byte) File{"bash": ParseBash, "python": ParsePython, "ts": ParseTypeScript}[language]
		f := parse("agent/tools.x", block[2])
		if got := shorts(t, f); got != want[language] || f.Problems != nil || string(f.Declarations[0].Effect) != effects[language] {
			t.Errorf("%s: got %s %v", language, got, problems(f))
		}
		delete(want, language)
	}
	if len(want) > 0 {
		t.Errorf("the guide has no example for %v", want)
	}
}
