package tool_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/tool"
)

func image(text string) *tool.FileImage {
	return &tool.FileImage{Mode: 0o640, Size: int64(len(text)), Hash: "h" + text[:min(len(text), 2)], Text: text}
}

// The journal keeps what a call did to files; the JSON of a change alone, which is part of events, has no contents.
func TestChangesInTheJournal(t *testing.T) {
	for name, texts := range map[string][2]string{
		"a line in the middle":   {"one\ntwo\nthree\n", "one\n2\nthree\n"},
		"characters with bytes":  {"é日本e", "é日木e"},
		"only the last byte":     {"\u00e9", "\u00e8"},
		"the same end":           {"aaaa", "aaaaaa"},
		"shorter":                {"aaaaaa", "aaaa"},
		"nothing in common":      {"abc", "xyz"},
		"from nothing":           {"", "secret content\n"},
		"to nothing":             {"secret content\n", ""},
		"the word of the member": {`"changes"`, `"changes":[]`},
	} {
		t.Run(name, func(t *testing.T) {
			r := tool.TextResult(`it changed "changes"`)
			r.Changes = []tool.FileChange{
				{Path: "/w/a", Kind: tool.FileChanged, Added: 1, Removed: 2, Before: image(texts[0]), After: image(texts[1])},
				{Path: "/w/b", Kind: tool.FileCreated, After: image(texts[1])},
				{Path: "/w/c", Kind: tool.FileRemoved, Before: image(texts[0])},
				tool.FileChange{Path: "/w/d", Kind: tool.FileChanged, Before: image("x"), After: image("y")}.Withhold(tool.WithheldLarge),
			}
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			var back tool.Result
			if err := json.Unmarshal(text, &back); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(r, back); diff != "" {
				t.Errorf("after a round trip (-want +got):\n%s", diff)
			}
			event, err := json.Marshal(r.Changes)
			if err != nil || strings.Contains(string(event), "content") {
				t.Errorf("%s, %v", event, err)
			}
		})
	}
}

// The journal of a small change of a large file grows by the file once, not twice.
func TestRecordedSizeOfAChange(t *testing.T) {
	before := strings.Repeat("a line of the file\n", 5000)
	r := tool.Result{Changes: []tool.FileChange{{Path: "/w/a", Before: image(before), After: image(before + "one more\n")}}}
	text, err := json.Marshal(r)
	if most := len(before) * 11 / 10; err != nil || len(text) > most {
		t.Errorf("%d bytes for a file of %d, at most %d expected; error %v", len(text), len(before), most, err)
	}
}

// A record that another program wrote, or that is damaged, is an error and never a panic.
func TestRecordedResults(t *testing.T) {
	for text, fails := range map[string]bool{
		`{"call_id":"","name":"","content":[{"type":"text","text":"\"changes\""}]}`:                      false, // before changes were recorded
		`{"content":null,"changes":null}`:                                                                false,
		`{"content":null,"changes":[{"path":"/a","kind":"changed"}]}`:                                    false,
		`{"content":null,"changes":[{"path":"/a","before":{"text":"abc"},"after":{"head":2,"tail":2}}]}`: true,
		`{"content":null,"changes":[{"path":"/a","after":{"head":-1}}]}`:                                 true,
		`{"content":null,"changes":{"path":"/a"}}`:                                                       true,
	} {
		var r tool.Result
		if err := json.Unmarshal([]byte(text), &r); (err != nil) != fails {
			t.Errorf("%s: error %v", text, err)
		}
	}
}

func TestRedactedChange(t *testing.T) {
	hide := func(text string) string { return strings.ReplaceAll(text, "hunter2", "[redacted]") }
	change := func(path, before, after string) tool.FileChange {
		return tool.FileChange{Path: path, Kind: tool.FileChanged, Before: image(before), After: image(after)}
	}
	if c := change("/w/a", "x", "y"); !cmp.Equal(c, c.Redact(hide)) {
		t.Error("a change without secrets was altered")
	}
	for name, c := range map[string]tool.FileChange{
		"before": change("/w/a", "key: hunter2", "key: none"),
		"after":  change("/w/a", "key: none", "key: hunter2"),
		"path":   change("/w/hunter2", "x", "y"),
	} {
		got := c.Redact(hide)
		want := tool.FileChange{Path: hide(c.Path), Kind: tool.FileChanged, Withheld: tool.WithheldSecret,
			Before: &tool.FileImage{Mode: 0o640, Size: c.Before.Size}, After: &tool.FileImage{Mode: 0o640, Size: c.After.Size}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
