//go:build unix

package mcp

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"raddle.dev/tool"
)

func TestInstructionsReachTheModel(t *testing.T) {
	all := tools(t, open(t, entry(t, "rich"), Options{}), "rich")
	if text := all["mcp_invoke_rich"].Description; !strings.HasSuffix(text, "Instructions of the server:\nAsk for notes first. The key is [redacted].") {
		t.Errorf("the description is %q", text)
	}
	good := tools(t, open(t, entry(t, "good"), Options{}), "good")
	if text := good["mcp_invoke_good"].Description; strings.Contains(text, "Instructions") {
		t.Errorf("the description is %q", text)
	}
}

func TestRootsNameTheWorkspace(t *testing.T) {
	all := tools(t, open(t, entry(t, "rich"), Options{Workspace: "/srv/my shop"}), "rich")
	want(t, run(t, all["mcp__rich__roots"], `{}`), false, "my shop file:///srv/my%20shop")
	old := tools(t, open(t, entry(t, "rich old"), Options{Workspace: "/srv/my shop"}), "rich old")
	want(t, run(t, old["mcp__rich_old__roots"], `{}`), false, "my shop file:///srv/my%20shop")
}

func TestProgressExtendsACall(t *testing.T) {
	all := tools(t, open(t, entry(t, "rich"), Options{CallTimeout: 4 * time.Second}), "rich")
	var shown []string
	r, err := all["mcp__rich__slow"].Run(t.Context(), tool.Call{Args: json.RawMessage(`{}`), Progress: func(text string) { shown = append(shown, text) }})
	if err != nil || r.Text() != "done" {
		t.Errorf("result %q, %v", r.Text(), err)
	}
	if !slices.Contains(shown, "0 of 20") {
		t.Errorf("shown is %q", shown)
	}
}

// The last report of progress is shown, however soon it follows another one.
func TestLastProgressIsShown(t *testing.T) {
	all := tools(t, open(t, entry(t, "rich"), Options{}), "rich")
	for range 20 {
		var shown []string
		r, err := all["mcp__rich__quick"].Run(t.Context(), tool.Call{Args: json.RawMessage(`{}`), Progress: func(text string) { shown = append(shown, text) }})
		if err != nil || r.Text() != "done" || len(shown) == 0 || shown[len(shown)-1] != "3 of 3" {
			t.Errorf("result %q, %v, shown is %q", r.Text(), err, shown)
		}
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	all := tools(t, open(t, entry(t, "rich"), Options{}), "rich")
	want(t, run(t, all["mcp_resources_rich"], `{}`), false, `{"resources":[{"mimeType":"text/plain","name":"first","uri":"note:1"}],"templates":[{"name":"notes","uriTemplate":"note:{n}"}]}`)
	want(t, run(t, all["mcp_resources_rich"], `{"uri":"note:7"}`), false, `{"contents":[{"mimeType":"","text":"text of note:7","uri":"note:7"},{"blob":"[3 bytes left out]"`)
	want(t, run(t, all["mcp_resources_rich"], `{"uri":"other:7"}`), true, "MCP server 'rich'")
	want(t, run(t, all["mcp_resources_rich"], `{"uri":7}`), true, "Invalid 'uri'")
	want(t, run(t, all["mcp_prompts_rich"], `{}`), false, `{"prompts":[{"arguments":[{"name":"who"}],"name":"greet"}]}`)
	want(t, run(t, all["mcp_prompts_rich"], `{"name":"greet","arguments":{"who":"Ann"}}`), false, `Greet Ann`)
	want(t, run(t, all["mcp_prompts_rich"], `{"name":"greet","arguments":{"who":1}}`), true, "Invalid 'arguments'")
	for args, want := range map[string]tool.Touch{
		`{}`:                           {},
		`{"uri":"note:1"}`:             {Unknown: "passes an address on"},
		`{"uri":"/etc/hosts"}`:         {Reads: []string{"/etc/hosts"}, Unknown: "passes a path on"},
		`{"uri":"etc/hosts"}`:          {Unknown: "passes an address on"},
		`{"uri":"FILE:///etc/passwd"}`: {Reads: []string{"/etc/passwd"}},
		`{"uri":"file:/etc/passwd"}`:   {Reads: []string{"/etc/passwd"}},
		`{"uri":"file:etc/passwd"}`:    {Unknown: "passes an address on"},
		`{"uri":"file://host/etc/x"}`:  {Unknown: "passes an address on"},
		`{"uri":"http:x"}`:             {Unknown: "passes an address on"},
		`{"uri":"//host/share"}`:       {Reads: []string{"//host/share"}, Unknown: "passes a path on"},
		`{"uri":"smb://host/x"}`:       {Unknown: "passes an address on"},
		`{"uri":"%"}`:                  {Unknown: "reads an address"},
		`{"uri":"file:///etc/passwd"}`: {Reads: []string{"/etc/passwd"}},
		`{"uri":"https://Evil.org/x"}`: {Network: []string{"evil.org"}},
	} {
		got, err := all["mcp_resources_rich"].Touches(json.RawMessage(args))
		if err != nil || !slices.Equal(got.Reads, want.Reads) || !slices.Equal(got.Network, want.Network) || !strings.HasPrefix(got.Unknown, want.Unknown) || (got.Unknown == "") != (want.Unknown == "") {
			t.Errorf("%s touches %+v, %v", args, got, err)
		}
	}
}

// answerAll runs a call and answers its questions; with each answer, next may
// replace the tool that continues.
func answerAll(t *testing.T, v tool.Tool, next func(n int) tool.Tool, answers ...string) (prompts []string, text string, err error) {
	t.Helper()
	c := tool.Call{ID: "1", Key: "run/1", Args: json.RawMessage(`{}`)}
	for n := 0; ; n++ {
		r, err := v.Run(t.Context(), c)
		var q *tool.Question
		if !errors.As(err, &q) {
			return prompts, r.Text(), err
		}
		prompts = append(prompts, q.Prompt)
		if n >= len(answers) {
			t.Fatalf("too many questions: %q", prompts)
		}
		a := tool.Answer{Prompt: q.Prompt, Refused: answers[n]}
		if a.Refused != "refused" {
			a.Value, _ = json.Marshal(answers[n])
			a.Refused = ""
		}
		c.Answers = append(c.Answers, a)
		if next != nil {
			v = next(n)
		}
	}
}

func TestElicitation(t *testing.T) {
	for _, mode := range []string{"rich", "rich old"} {
		t.Run(mode, func(t *testing.T) { testElicitation(t, mode) })
	}
}

func testElicitation(t *testing.T, mode string) {
	name := strings.ReplaceAll(mode, " ", "_")
	all := tools(t, open(t, entry(t, mode), Options{}), mode)
	order := all["mcp__"+name+"__order"]
	prompts, text, err := answerAll(t, order, nil, "green", "blue", "3", "no", "")
	if err != nil || !strings.HasPrefix(text, "accept map[color:blue count:3 gift:false]") {
		t.Errorf("result %q, %v", text, err)
	}
	before := "MCP server " + mode + " asks"
	wants := []string{before + ": Which one?\ncolor", before + ": Which one?\ncolor\n(answer with one of red, blue)", before + ": Which one?\ncount",
		before + ": Which one?\ngift (optional)", before + ": Which one?\nA note (optional)"}
	if !slices.Equal(prompts, wants) {
		t.Errorf("asked %q", prompts)
	}
	_, text, err = answerAll(t, all["mcp_invoke_"+name], nil)
	if err != nil || !strings.Contains(text, "Missing 'tool'") {
		t.Errorf("result %q, %v", text, err)
	}
	if _, text, err = answerAll(t, order, nil, "refused"); err != nil || !strings.HasPrefix(text, "decline map[]") {
		t.Errorf("result %q, %v", text, err)
	}
	want(t, run(t, order, `{}`), false, "decline") // there is no key: no person can be asked
}

func TestElicitationAcrossARestart(t *testing.T) {
	var s *Servers
	restart := func(name string) func(int) tool.Tool {
		return func(n int) tool.Tool {
			if n == 1 || s == nil {
				if s != nil {
					s.Close()
				}
				s = open(t, entry(t, "rich"), Options{})
			}
			return tools(t, s, "rich")[name]
		}
	}
	first := restart("mcp__rich__look")(0)
	prompts, text, err := answerAll(t, first, restart("mcp__rich__look"), "red", "2", "yes", "x")
	if err != nil || !strings.HasPrefix(text, "accept map[color:red count:2 gift:true note:x]") || len(prompts) != 4 {
		t.Errorf("result %q, %v after %q", text, err, prompts)
	}
	s.Close()
	s = nil
	first = restart("mcp__rich__order")(0)
	if prompts, _, err = answerAll(t, first, restart("mcp__rich__order"), "red", "2", "yes", "x"); !errors.Is(err, tool.ErrCutOff) || len(prompts) != 2 {
		t.Errorf("%v after %q, want %v", err, prompts, tool.ErrCutOff)
	}
	r, err := tools(t, s, "rich")["mcp__rich__order"].Run(t.Context(), tool.Call{Key: "run/1", Repeat: true, Args: json.RawMessage(`{}`), Answers: []tool.Answer{
		{Prompt: prompts[0], Value: json.RawMessage(`"red"`)}, {Prompt: prompts[1], Refused: "no"}}})
	if err != nil || !strings.HasPrefix(r.Text(), "decline") {
		t.Errorf("repeated: %q, %v", r.Text(), err)
	}
}

func TestInDoubtOfAnEntry(t *testing.T) {
	f := entry(t, "good")
	more, err := Parse("mcp.json", []byte(`{"mcpServers":{"a":{"command":"x","in_doubt":"retry"},"b":{"command":"x","in_doubt":"maybe"}}}`))
	if err != nil || more.Servers[0].InDoubt != tool.DoubtRetry {
		t.Errorf("read %+v, %v", more.Servers, err)
	}
	if len(more.Problems) != 1 || !strings.Contains(more.Problems[0].Message, `has the unknown "in_doubt" "maybe": it must be one of retry, skip, ask`) {
		t.Errorf("problems %v", more.Problems)
	}
	f.Servers[0].InDoubt = tool.DoubtSkip
	all := tools(t, open(t, f, Options{}), "good")
	for _, name := range []string{"mcp_invoke_good", "mcp__good__die"} {
		if all[name].InDoubt != tool.DoubtSkip {
			t.Errorf("%s is %q in doubt", name, all[name].InDoubt)
		}
	}
}
