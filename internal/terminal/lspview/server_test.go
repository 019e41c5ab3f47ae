package lspview_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/terminal/language"
)

const graph = `name: g
initial_state: {topic: looms}
start: plan
nodes:
  plan:
    type: llm
    description: Plans 日本 🎉.
    prompt: "🎉🎉 {{topic}}"
    output_schema: {type: object, properties: {outline: {type: string}}}
    fallback: sketch
    next: draft
  sketch:
    type: script
    script: scripts/sketch.sh
    state_updates: {outline: "{{topic}}"}
    next: draft
  draft:
    type: llm
    prompt: "🎉 {{outline}} of {{topic}}"
    next: done
  done:
    type: end
    output: "{{outline}}"
`

const script = `echo "{\"outline\": \"x\", \"_next\": \"draft\"}"
`

const tests = `tests:
  - name: all
    prompt: x
    nodes: {plan: {outline: a}, draft: b}
    expect: {path: [plan, draft, done], state: {outline: a}}
`

func agentFiles() map[string]string {
	return map[string]string{"g/graph.yaml": graph, "g/scripts/sketch.sh": script, "g/g.test.yaml": tests}
}

func isEmpty(list []language.Diagnostic) bool { return len(list) == 0 }

// problems returns diagnostics without those that a machine without a model has.
func problems(list []language.Diagnostic) (rest []language.Diagnostic) {
	for _, d := range list {
		if !strings.Contains(d.Message, "model") {
			rest = append(rest, d)
		}
	}
	return rest
}

func none(list []language.Diagnostic) bool { return len(problems(list)) == 0 }

func some(list []language.Diagnostic) bool { return len(problems(list)) > 0 }

func TestDiagnosticsComeWhileTypingAndGo(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", graph)
	c.waitFor(uri, none)
	d := c.docs[uri]
	at := strings.Index(graph, "next: draft")
	at = len([]rune(graph[:at])) + 3 + len("next: dra") // three characters before it have two units
	c.change(uri, at, at+1, "g")
	found := problems(c.waitFor(uri, some))
	if got := d.slice(t, found[0].Range); got != "dragt" || found[0].Code != "unknown-target" || found[0].Severity != 1 {
		t.Errorf("the diagnostic is about %q: %s", got, compact(found))
	}
	var actions []language.CodeAction
	c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": uri}, "range": found[0].Range, "context": map[string]any{"diagnostics": found}}, &actions)
	if len(actions) != 1 || actions[0].Edit.DocumentChanges[0].Edits[0].NewText != "draft" || d.slice(t, actions[0].Edit.DocumentChanges[0].Edits[0].Range) != "dragt" {
		t.Errorf("actions: %s", compact(actions))
	}
	c.change(uri, at, at+1, "f")
	c.waitFor(uri, none)
}

func TestDiagnosticsFollowUnsavedScriptsAndTests(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", graph)
	c.waitFor(uri, none)
	sh := c.open("g/scripts/sketch.sh", strings.ReplaceAll(script, "draft", "drafty"))
	found := c.waitFor(sh, some)
	if got := c.docs[sh].slice(t, found[0].Range); !strings.HasPrefix(got, "drafty") {
		t.Errorf("the diagnostic is about %q", got)
	}
	c.close(sh)
	c.waitFor(sh, isEmpty)
	test := c.open("g/g.test.yaml", strings.Replace(tests, "plan, draft, done", "plan, drafd, done", 1))
	found = c.waitFor(test, some)
	if got := c.docs[test].slice(t, found[0].Range); got != "drafd" {
		t.Errorf("the diagnostic is about %q: %s", got, compact(found))
	}
}

func labels(t *testing.T, c *client, uri string, at language.Position) string {
	t.Helper()
	var list struct {
		Items []language.Completion `json:"items"`
	}
	c.call("textDocument/completion", map[string]any{"textDocument": map[string]any{"uri": uri}, "position": at}, &list)
	var names []string
	for _, item := range list.Items {
		names = append(names, item.Label)
		c.docs[uri].slice(t, item.TextEdit.Range)
	}
	return " " + strings.Join(names, " ") + " "
}

func TestCompletion(t *testing.T) {
	places := map[string]struct{ line, want, never string }{
		"key of a node":      {"  more:\n    type: llm\n    §", " prompt tools next output_schema ", " script "},
		"key of a script":    {"  more:\n    type: script\n    §", " script working_dir ", " prompt "},
		"type":               {"  more:\n    type: §", " llm script approval wait ", " prompt "},
		"node":               {"  more:\n    type: llm\n    next: §", " plan draft done ", " outline "},
		"node in a list":     {"  more:\n    type: llm\n    next: [plan, §", " plan draft ", ""},
		"node in items":      {"  more:\n    type: llm\n    next:\n      - §", " plan draft ", ""},
		"key of the state":   {"  more:\n    type: llm\n    prompt: \"日本 {{§", " topic outline initial_prompt ", " plan "},
		"script":             {"  more:\n    type: script\n    script: §", " scripts/sketch.sh ", ""},
		"flow mapping":       {"  more: {type: llm, §", " prompt next ", " script "},
		"value in a mapping": {"  more: {type: §", " llm wait ", ""},
		"top level":          {"§", " settings triggers ", " prompt "},
		"settings":           {"settings:\n  §", " max_loop_iterations timeout ", ""},
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			c := start(t, agentFiles())
			uri := c.open("g/graph.yaml", graph)
			c.waitFor(uri, none)
			end := len(c.docs[uri].text)
			line, _, _ := strings.Cut(place.line, "§")
			c.change(uri, end, end, line)
			got := labels(t, c, uri, c.docs[uri].position(len(c.docs[uri].text)))
			for _, want := range strings.Fields(place.want) {
				if !strings.Contains(got, " "+want+" ") {
					t.Errorf("%s is missing in%s", want, got)
				}
			}
			if never := strings.TrimSpace(place.never); never != "" && strings.Contains(got, " "+never+" ") {
				t.Errorf("%s is wrong in%s", never, got)
			}
		})
	}
}

func TestHover(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", graph)
	c.waitFor(uri, none)
	hovers := map[string]struct {
		text string
		n    int
		want string
	}{
		"a key of the state": {"outline", 3, "set by `plan`, `sketch` on 2 of 2 paths to `draft`"},
		"an initial value":   {"topic", 2, "set by initial_state"},
		"a field":            {"fallback", 1, "Id of the node that runs after a failure"},
		"a type":             {"output_schema", 1, "JSON schema of the result"},
		"a node":             {"draft", 1, "a node of type `llm`"},
	}
	for name, h := range hovers {
		var got *language.Hover
		c.call("textDocument/hover", c.place(uri, h.text, h.n), &got)
		if got == nil || !strings.Contains(got.Contents.Value, h.want) {
			t.Errorf("%s: %s", name, compact(got))
			continue
		}
		if at := c.docs[uri].slice(t, *got.Range); at != h.text {
			t.Errorf("%s: the hover is about %q", name, at)
		}
	}
}

func TestDefinitionAndReferences(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", graph)
	test := c.open("g/g.test.yaml", tests)
	c.waitFor(uri, none)
	for _, from := range []struct {
		uri, text string
		n         int
		want      string
	}{
		{uri, "draft", 1, "draft"}, {test, "draft", 2, "draft"}, {uri, "sketch.sh", 1, ""}, {uri, "outline}}", 1, "outline"},
	} {
		var found []language.Location
		c.call("textDocument/definition", c.place(from.uri, from.text, from.n), &found)
		if len(found) == 0 {
			t.Errorf("no definition of %s in %s", from.text, from.uri)
			continue
		}
		if from.want == "" {
			if found[0].URI != c.uri("g/scripts/sketch.sh") {
				t.Errorf("the script is %s", found[0].URI)
			}
		} else if got := c.docs[found[0].URI].slice(t, found[0].Range); got != from.want {
			t.Errorf("the definition of %s is %q", from.text, got)
		}
	}
	var found []language.Location
	params := c.place(uri, "draft", 1)
	params["context"] = map[string]any{"includeDeclaration": true}
	c.call("textDocument/references", params, &found)
	if len(found) != 6 { // next twice, its entry, the script, nodes and path of the test
		t.Errorf("references: %s", compact(found))
	}
	var symbols []language.Symbol
	c.call("textDocument/documentSymbol", map[string]any{"textDocument": map[string]any{"uri": uri}}, &symbols)
	if len(symbols) != 4 || len(symbols[3].Children) != 4 || symbols[3].Children[0].Name != "plan" || symbols[3].Children[0].Detail != "llm" {
		t.Errorf("symbols: %s", compact(symbols))
	}
}

// applied returns the texts of files after the edits of a rename, by their addresses.
func (c *client) applied(edit *language.WorkspaceEdit, stored map[string]string) map[string]string {
	c.t.Helper()
	texts := map[string]string{}
	for _, change := range edit.DocumentChanges {
		d := c.docs[change.TextDocument.URI]
		switch {
		case d == nil:
			d = &clientDocument{text: []uint16(nil)}
			for name, text := range stored {
				if c.uri(name) == change.TextDocument.URI {
					d = newDocument(text)
				}
			}
		case change.TextDocument.Version == nil || *change.TextDocument.Version != d.version:
			c.t.Errorf("the edit is for the version %v of %s", change.TextDocument.Version, change.TextDocument.URI)
		}
		texts[change.TextDocument.URI] = d.apply(c.t, change.Edits)
	}
	return texts
}

func TestRename(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", graph)
	c.waitFor(uri, none)
	var edit language.WorkspaceEdit
	params := c.place(uri, "outline}}", 1)
	params["newName"] = "plot"
	c.call("textDocument/rename", params, &edit)
	texts := c.applied(&edit, agentFiles())
	for name, text := range agentFiles() {
		if got, want := texts[c.uri(name)], strings.ReplaceAll(text, "outline", "plot"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	params = c.place(uri, "draft", 1)
	params["newName"] = "write"
	c.call("textDocument/rename", params, &edit)
	texts = c.applied(&edit, agentFiles())
	for name, text := range agentFiles() {
		if got, want := texts[c.uri(name)], strings.ReplaceAll(text, "draft", "write"); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
		}
	}
	for name, why := range map[string]string{"plan": "already", "a b": "cannot be a name", "null": "cannot be a name", "1": "cannot be a name"} {
		params["newName"] = name
		if m := c.request("textDocument/rename", params); m.Error == nil || !strings.Contains(m.Error.Message, why) {
			t.Errorf("renamed to %s: %s", name, compact(m))
		}
	}
}

func TestFormattingIsThatOfTheCommand(t *testing.T) {
	c := start(t, agentFiles())
	uri := c.open("g/graph.yaml", strings.ReplaceAll(graph, "next: ", "next:    "))
	var edits []language.TextEdit
	c.call("textDocument/formatting", map[string]any{"textDocument": map[string]any{"uri": uri}, "options": map[string]any{"tabSize": 2, "insertSpaces": true}}, &edits)
	if got := c.docs[uri].apply(t, edits); got != graph {
		t.Errorf("formatted: %s", got)
	}
}

func TestProtocolIsKept(t *testing.T) {
	c := start(t, agentFiles())
	if m := c.request("workspace/doesNotExist", map[string]any{}); m.Error == nil || m.Error.Code != -32601 {
		t.Errorf("an unknown method: %s", compact(m))
	}
	if m := c.request("textDocument/hover", map[string]any{"textDocument": map[string]any{"uri": "untitled:Untitled-1"}, "position": map[string]any{"line": 3, "character": 9}}); m.Error != nil || string(m.Result) != "null" {
		t.Errorf("a hover of a document that is not open: %s", compact(m))
	}
	c.open("g/graph.yaml", graph)
	c.send(map[string]any{"id": 900, "method": "textDocument/documentSymbol", "params": map[string]any{"textDocument": map[string]any{"uri": c.uri("g/graph.yaml")}}})
	c.notify("$/cancelRequest", map[string]any{"id": 900})
	for m := c.receive(); m.ID == nil || *m.ID != 900; m = c.receive() {
	}
	if m := c.request("shutdown", nil); m.Error != nil {
		t.Errorf("shutdown: %s", compact(m))
	}
	if m := c.request("textDocument/hover", map[string]any{}); m.Error == nil || m.Error.Code != -32600 {
		t.Errorf("a request after shutdown: %s", compact(m))
	}
	c.notify("exit", nil)
	if err := <-c.ended; err != nil {
		t.Errorf("the server ends with %v", err)
	}
}

func TestServerEndsWithTheEditor(t *testing.T) {
	c := start(t, nil)
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-c.ended; err == nil {
		t.Error("an editor that goes away without shutdown is no error")
	}
}
