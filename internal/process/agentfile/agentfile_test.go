package agentfile

import (
	"slices"
	"strings"
	"testing"

	"raddle.dev/flow/spec"
)

// A role is the config.yaml of an agent, whatever its head looks like.
func TestRole(t *testing.T) {
	for name, c := range map[string]struct {
		text, want string
		ignored    []string
	}{
		"plain": {
			text: "You are terse.\nAlways.",
			want: "name: plain\ndescription: You are terse.\ninstructions: |-\n  You are terse.\n  Always.\n",
		},
		"head": {
			text:    "\ufeff---\r\nmodel: openai:gpt-4o\r\ntemperature: 0.2\r\ntop_p: null\r\nuse_tools: fs, mine ,\r\nenabled_mcp_servers: [a]\r\nmemory: true\r\nprompt: null\r\n---\r\nWork.\r\n",
			want:    "name: head\ndescription: Work.\nmodel: openai:gpt-4o\ntemperature: 0.2\nglobal_tools: [fs, mine]\nmcp_servers: [a]\ninstructions: Work.\n",
			ignored: []string{"memory"},
		},
		"colon": {
			text: "---\ndescription: Use it: always\nmodel: x:y\n---\nText",
			want: "name: colon\ndescription: 'Use it: always'\nmodel: x:y\ninstructions: Text\n",
		},
		"rule": {
			text: "Above\n---\nBelow",
			want: "name: rule\ndescription: Above\ninstructions: |-\n  Above\n  ---\n  Below\n",
		},
		"shots": {
			text: "Do.\n### INPUT:\na\n### OUTPUT:\nb",
			want: "name: shots\ndescription: Do.\ninstructions: |-\n  Do.\n  ### INPUT:\n  a\n  ### OUTPUT:\n  b\n",
		},
		"none": {
			text: "---\nenabled_tools: []\nskills_enabled: false\n---\nX",
			want: "name: none\ndescription: X\nskills_enabled: false\ninstructions: X\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			role := ReadRole(name, []byte(c.text))
			text, err := role.Config()
			if err != nil || string(text) != c.want || !slices.Equal(role.Ignored, c.ignored) {
				t.Errorf("%s, %q, %v; want:\n%s", text, role.Ignored, err, c.want)
			}
			read, err := spec.ParseConfig("config.yaml", text)
			if err != nil || len(read.Findings) > 0 {
				t.Errorf("%v %v", err, read)
			}
		})
	}
	if d := ReadRole("long", []byte(strings.Repeat("ä", 200))).Description; len([]rune(d)) != longestBeginning || !strings.HasSuffix(d, "…") {
		t.Errorf("the description is %q", d)
	}
}

// A value that a program wrote with a wrong type is an error of the file that it becomes, with its place.
func TestWrongType(t *testing.T) {
	text, err := ReadRole("x", []byte("---\ntemperature: hot\n---\nX")).Config()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.ParseConfig("config.yaml", text); err == nil || !strings.Contains(err.Error(), "temperature") {
		t.Errorf("%v", err)
	}
}
