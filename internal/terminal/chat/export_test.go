package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/conversation"
	"raddle.dev/llm"
)

func TestCodeBlocks(t *testing.T) {
	for text, want := range map[string][]string{
		"no code": nil,
		"a\n```go\nx := 1\n\ny\n```\nb\n~~~\nz\n~~~\n":       {"x := 1\n\ny", "z"},
		"````\n```\ninner\n```\n````":                        {"```\ninner\n```"},
		"```\n``` go\n~~~\n```":                              {"``` go\n~~~"},
		"  ```\n  indented\n  ```":                           {"  indented"},
		"```\nnot closed":                                    {"not closed"},
		"```\n```":                                           {""},
		"1. a step:\n   ```sh\n   make\n   ```\n2. the next": {"   make"},
	} {
		if got := codeBlocks(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// A conversation as a file has what was said and called, and a page of it runs and loads nothing.
func TestFormsOfAConversation(t *testing.T) {
	messages := []llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: " What is in a? <script>alert(1)</script>\n"}}},
		{Role: llm.RoleAssistant, Parts: []llm.Part{
			llm.Text{Text: "  "},
			llm.ToolCall{Name: "fs_cat", Args: json.RawMessage("{\"path\":\"`a`\"}")},
			llm.Text{Text: "| a |\n|---|\n| 1 |"},
		}},
	}
	want := "# A & B\n\n## You\n\nWhat is in a? <script>alert(1)</script>\n\n## Agent\n\n- called `fs_cat` with `{\"path\":\"'a'\"}`\n\n| a |\n|---|\n| 1 |\n"
	if got := formatMarkdown("A & B", messages); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	page, err := formatHTML("A & <B>", messages)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"<title>A &amp; &lt;B&gt;</title>": true,
		"default-src 'none'":               true,
		"<td>1</td>":                       true,
		"<script":                          false,
		"src=":                             false,
	} {
		if strings.Contains(string(page), text) != want {
			t.Errorf("the page has %q: %t\n%s", text, !want, page)
		}
	}
}

// What a turn has shown in part is kept in its order, each result with its call, and no more than there is room for.
func TestDetailsOfATurn(t *testing.T) {
	plain := func(_ term.Style, text string) string { return text }
	var d details
	if got := d.format(plain); got != "" {
		t.Errorf("nothing is %q", got)
	}
	d.addReasoning("I look ")
	d.addReasoning("first.\n")
	d.addCall("1", "fs_cat", "a")
	d.addCall("2", "fs_cat", "b")
	d.addResult("2", "fs_cat", "of b\n\nand more")
	d.addResult("1", "fs_cat", "of a")
	d.addResult("3", "fs_ls", "of another drive")
	d.addReasoning("Now\x1b[31m I know.")
	want := strings.Join([]string{
		"", "reasoning", "  I look first.",
		"", "fs_cat a", "  of a",
		"", "fs_cat b", "  of b", "  ", "  and more",
		"", "fs_ls", "  of another drive",
		"", "reasoning", "  Now I know.",
	}, "\n")
	if got := d.format(plain); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	d.reset()
	for range 20 {
		d.addResult("", "large", strings.Repeat("x", 2*maxDetail))
	}
	if d.size > maxDetails+20 || d.size < maxDetails-maxDetail || len(d.parts[0].text) > maxDetail+5 {
		t.Errorf("%d bytes are kept, %d of the first", d.size, len(d.parts[0].text))
	}
	d.reset()
	if got := d.format(plain); got != "" || d.size != 0 {
		t.Errorf("after a reset there are %d bytes", d.size)
	}
}

func TestHowTurnsAreListed(t *testing.T) {
	for want, turn := range map[string]conversation.Turn{
		"":                        {},
		"  (1 call)":              {Calls: make([]conversation.Call, 1)},
		"  (2 files)":             {Files: make([]string, 2)},
		"  (interrupted)":         {Interrupted: true},
		"  (1 call, 2 files)":     {Calls: make([]conversation.Call, 1), Files: make([]string, 2)},
		"  (1 call, interrupted)": {Calls: make([]conversation.Call, 1), Interrupted: true},
	} {
		if got := describeTurn(turn); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for text, want := range map[string]string{
		" two\n words ":         "two words",
		strings.Repeat("x", 60): strings.Repeat("x", 60),
		strings.Repeat("x", 61): strings.Repeat("x", 59) + "…",
		strings.Repeat("漢", 31): strings.Repeat("漢", 29) + "…",
		"a\x1b[31mred":          "ared",
	} {
		if got := firstWords(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
