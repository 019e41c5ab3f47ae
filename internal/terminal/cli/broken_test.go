//go:build unix

package cli_test

import (
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// A brokenFile is a file with one mistake, and what raddle says about it.
type brokenFile struct {
	files map[string]string // graph.yaml and t.yaml, or config.yaml, are completed if they are not complete
	args  []string          // if nil: check
	code  int
	want  string // a part of the first line: place, severity, message and fix
	shown string // the line of the file, with the word that the carets are below in «»
}

// brokenGraphs are mistakes in a graph.yaml; what is given is the node a, or the whole file.
var brokenGraphs = map[string]brokenFile{
	"node type":             {files: graphWith("{type: lmm, prompt: hi, next: z}"), code: 3, want: "graph.yaml:5:13: error: nodes.a.type: unknown variant `lmm`, expected one of `agent`, `script`, `approval`, `input`, `llm`, `rag`, `end`, `map`, `wait` (did you mean `llm`?)", shown: "  a: {type: «lmm», prompt: hi, next: z}"},
	"key of a node":         {files: graphWith("{type: end, ouput: hi}"), code: 0, want: "graph.yaml:5:18: warning: [a] unknown key `nodes.a.ouput` is ignored (did you mean `output`?)", shown: "  a: {type: end, «ouput»: hi}"},
	"key of the graph":      {files: file("graph.yaml", "name: g\nstart: a\nmodl: x\nnodes: {a: {type: end}}\n"), want: "graph.yaml:3:1: warning: unknown key `modl` is ignored (did you mean `model`?)", shown: "«modl»: x"},
	"target":                {files: graphWith("{type: llm, prompt: hi, next: zz}"), code: 3, want: "graph.yaml:5:36: error: [a] References non-existent node 'zz' in 'next' (did you mean `z`?)", shown: "  a: {type: llm, prompt: hi, next: «zz»}"},
	"tab":                   {files: file("graph.yaml", "name: g\nstart: a\nnodes:\n\ta: {type: end}\n"), code: 3, want: "graph.yaml:4:1: error: while scanning for the next token: found character that cannot start any token (indent with spaces: YAML allows no tabs there)", shown: " «a»: {type: end}"},
	"braces without quotes": {files: graphWith("{type: llm, prompt: {{topic}}, next: z}"), code: 3, want: `graph.yaml:5:26: error: nodes.a.prompt: invalid type: map, expected a string (quote it: "{{topic}}"; YAML reads braces without quotes as a map)`, shown: "  a: {type: llm, prompt: «{{topic}}», next: z}"},
	"key that nothing sets": {files: graphWith(`{type: llm, prompt: "Write about {{topic}}.", next: z}`), code: 3, want: "graph.yaml:5:39: error: [a] `prompt` reads {{topic}}, but nothing sets `topic` on the path a (give it a value in initial_state: no node sets it)", shown: `  a: {type: llm, prompt: "Write about «{{topic}}».", next: z}`},
	"cycle":                 {files: graphWith("{type: llm, prompt: hi, next: b}\n  b: {type: llm, prompt: ho, next: a}"), code: 3, want: "graph.yaml:5:3: error: Cycle detected: a -> b -> a (a loop goes through a script node that emits `_next`)", shown: "  «a»: {type: llm, prompt: hi, next: b}"},
	"booleans as options":   {files: graphWith("{type: approval, question: ok?, options: [true], routes: {}, on_other: z}"), code: 3, want: `graph.yaml:5:48: error: nodes.a.options[0]: invalid type: boolean ` + "`true`" + `, expected a string (quote it: "true")`, shown: "  a: {type: approval, question: ok?, options: [«true»], routes: {}, on_other: z}"},
	"node declared twice":   {files: graphWith("{type: end}\n  a: {type: end}"), code: 3, want: "graph.yaml:6:3: error: nodes: duplicate key `a` (first on line 5)", shown: "  «a»: {type: end}"},
	"writes at the same time": {files: graphWith("{type: llm, prompt: hi, next: [b, c]}\n  b: {type: llm, prompt: hi, state_updates: {y: \"{{output}}\"}, next: z}\n  c: {type: llm, prompt: hi, state_updates: {y: \"{{output}}\"}, next: z}"), code: 3,
		want: "graph.yaml:5:36: error: nodes [b, c] all write key 'y' in the same parallel super-step but no reducer is declared for 'y'. Add `reducers: { y: <reducer> }`", shown: "  a: {type: llm, prompt: hi, next: «[»b, c]}"},
	"spaces in braces":     {files: graphWith(`{type: end, output: "{{ initial_prompt }}"}`), want: "graph.yaml:5:26: warning: [a] {{ initial_prompt }} is not a placeholder and stays as it is (write {{initial_prompt}})", shown: `  a: {type: end, output: «"{{ initial_prompt }}"»}`},
	"time with a unit":     {files: graphWith("{type: llm, prompt: hi, timeout: 5m, next: z}"), code: 3, want: `graph.yaml:5:39: error: nodes.a.timeout: invalid type: string "5m", expected u64 (a whole number of seconds) (write the seconds: ` + "`timeout: 300`)", shown: "  a: {type: llm, prompt: hi, timeout: «5m», next: z}"},
	"missing field":        {files: graphWith("{type: llm, next: z}"), code: 3, want: "graph.yaml:5:3: error: nodes.a: missing field `prompt` (add `prompt: ...`)", shown: "  «a»: {type: llm, next: z}"},
	"missing script":       {files: with(graphWith("{type: script, script: run.hs, next: z}"), "run.sh", "echo '{}'\n"), code: 3, want: "run.hs' (did you mean `run.sh`?)", shown: "  a: {type: script, script: «run.hs», next: z}"},
	"tool of a node":       {files: graphWith("{type: llm, prompt: hi, tools: [user_ask], next: z}"), code: 3, want: "graph.yaml:5:38: error: [a] llm node references unknown tool 'user_ask' (did you mean `user__ask`?)", shown: "  a: {type: llm, prompt: hi, tools: [«user_ask»], next: z}"},
	"list of nodes":        {files: file("graph.yaml", "name: g\nstart: a\nnodes:\n  - {type: end}\n"), code: 3, want: "graph.yaml:4:3: error: nodes: invalid type: sequence, expected a map (write each node below its name: `answer: {type: llm, prompt: ...}`)", shown: "  «-» {type: end}"},
	"list for a map":       {files: graphWith("{type: llm, prompt: hi, state_updates: [x], next: z}"), code: 3, want: "graph.yaml:5:45: error: nodes.a.state_updates: invalid type: sequence, expected a map (write names with values: `state_updates: {name: value}`)", shown: "  a: {type: llm, prompt: hi, state_updates: «[»x], next: z}"},
	"model without client": {files: file("graph.yaml", "name: g\nmodel: gpt-5\nstart: a\nnodes: {a: {type: end}}\n"), code: 3, want: "graph.yaml:2:8: error: Unknown chat model 'gpt-5' (write openai:gpt-5)", shown: "model: «gpt-5»"},
	"condition on a node":  {files: graphWith(`{type: end, when: "{{x}}"}`), want: "graph.yaml:5:18: warning: [a] unknown key `nodes.a.when` is ignored (conditions are in scripts, which print {\"_next\": \"NODE\"}, and in the routes of an approval: see raddle help cookbook)", shown: `  a: {type: end, «when»: "{{x}}"}`},
	"no end":               {files: file("graph.yaml", "name: g\nmodel: script:t.yaml\nstart: a\nnodes:\n  a: {type: llm, prompt: hi, next: b}\n  b: {type: llm, prompt: ho}\n"), code: 3, want: "graph.yaml:5:3: error: Graph has no end nodes; execution would never terminate (add `done: {type: end, output: ...}`, and let a node lead to it)", shown: "  «a»: {type: llm, prompt: hi, next: b}"},
	"unreachable":          {files: graphWith("{type: end}\n  b: {type: end}"), want: "graph.yaml:6:3: warning: [b] Node is unreachable from the start node via declared edges (script `_next` routing is not analyzed) (let a node lead to it, name it in the `targets` of a script, or remove it)", shown: "  «b»: {type: end}"},
	"start":                {files: file("graph.yaml", "name: g\nstart: aa\nnodes: {a: {type: end}}\n"), code: 3, want: "graph.yaml:2:8: error: Start node 'aa' not found in graph 'g'. Available nodes: a (did you mean `a`?)", shown: "start: «aa»"},
	"text for a number":    {files: file("graph.yaml", "name: g\ntemperature: hot\nstart: a\nnodes: {a: {type: end}}\n"), code: 3, want: `graph.yaml:2:14: error: temperature: invalid type: string "hot", expected f64 (a number) (write a number: ` + "`temperature: 0.7`)", shown: "temperature: «hot»"},
	"bracket":              {files: file("graph.yaml", "name: g\nstart: a\nnodes:\n  a: {type: end\n  b: {type: end}\n"), code: 3, want: "graph.yaml:5:4: error: while parsing a flow mapping: did not find expected ',' or '}' (it began at line 4) (look for a quote, comma or bracket that is missing or too many, here or in the line above)", shown: "  b«:» {type: end}"},
	"reducer":              {files: file("graph.yaml", "name: g\nreducers: {x: apend}\nstart: a\nnodes: {a: {type: end}}\n"), code: 3, want: "graph.yaml:2:15: error: reducers.x: unknown variant `apend`, expected one of `append`, `extend`, `concat`, `sum`, `max`, `min`, `merge`, `overwrite` (did you mean `append`?)", shown: "reducers: {x: «apend»}"},
	"no next":              {files: graphWith("{type: llm, prompt: hi, fallback: z}"), want: "graph.yaml:5:3: warning: [a] llm node has no `next`: the run fails when the node succeeds (add `next: <node>`)", shown: "  «a»: {type: llm, prompt: hi, fallback: z}"},
	"syntax of a script":   {files: with(graphWith("{type: script, script: run.sh, next: z}"), "run.sh", "if true; then\n  echo '{}'\n"), code: 3, want: "run.sh:2:1: error: bash: syntax error: unexpected end of file", shown: "  «echo» '{}'"},
}

// brokenAgents are mistakes in an agent's config.yaml, its tools and servers, and in the other files that people write.
var brokenAgents = map[string]brokenFile{
	"second tool":       {files: configWith("global_tools: [fs_read, fs_raed]\n"), want: `config.yaml:3:25: warning: there is no tool "fs_raed": did you mean fs_read?`, shown: "global_tools: [fs_read, «fs_raed»]"},
	"no tool at all":    {files: configWith("global_tools: [fs_raed]\n"), code: 3, want: `config.yaml:3:16: error: there is no tool "fs_raed": did you mean fs_read?`, shown: "global_tools: [«fs_raed»]"},
	"second server":     {files: with(configWith("mcp_servers: [shop, stok]\n"), "mcp.json", `{"mcpServers": {"shop": {"command": "x"}, "stock": {"command": "y"}}}`), want: `config.yaml:3:21: warning: there is no MCP server "stok": did you mean stock?`, shown: "mcp_servers: [shop, «stok»]"},
	"key of an agent":   {files: configWith("instrutions: Be kind.\n"), want: "config.yaml:3:1: warning: unknown key `instrutions` is ignored (did you mean `instructions`?)", shown: "«instrutions»: Be kind."},
	"model of an agent": {files: file("config.yaml", "name: c\nmodel: opnai:gpt-5\n"), code: 3, want: "config.yaml:2:8: error: Unknown chat model 'opnai:gpt-5' (did you mean openai:gpt-5?)", shown: "model: «opnai:gpt-5»"},
	"annotation":        {files: with(configWith(""), "tools.sh", "# @cmd Greet\n# @opton --name! Who\ngreet() { echo hi; }\n"), want: "tools.sh:2:3: warning: @opton(line 2) is unknown tag: the line is ignored; did you mean @option?", shown: "# «@opton» --name! Who"},
	"type of an option": {files: with(configWith(""), "tools.sh", "# @cmd Greet\n# @option --n <INTEGER> How often\ngreet() { echo hi; }\n"), want: "tools.sh:2:15: warning: <INTEGER> is only a name here, and the value a text; write <INT> for a number", shown: "# @option --n «<INTEGER>» How often"},
	"syntax of tools":   {files: with(configWith(""), "tools.sh", "# @cmd Greet\ngreet() { echo hi; }\nother() { if; }\n"), code: 3, want: "tools.sh:3:13: error: bash: syntax error near unexpected token `;' (bash -n checks it without running it)", shown: "other() { if«;» }"},
	"JSON":              {files: with(configWith("mcp_servers: [shop]\n"), "mcp.json", `{"mcpServers": {"shop": {"command": "sk-secret"}, "b": [}}`), code: 3, want: "mcp.json:1:57: error: while parsing a flow node: did not find expected node content (look for a quote, comma or bracket that is missing or too many, here or in the line above)", shown: "…«}»…"},
	"key of a server":   {files: with(configWith("mcp_servers: [shop]\n"), "mcp.json", `{"mcpServers": {"shop": {"comand": "x", "env": {"TOKEN": "sk-secret"}}}}`), want: `mcp.json:1:26: warning: MCP server 'shop' has the unknown key "comand" (did you mean command?)`, shown: `«"comand"»: …`},
	"own configuration": {files: with(configWith(""), ".config/raddle/config.yaml", "clients:\n  openai: {api_kee: sk-secret}\n"), code: 3, want: `config.yaml:2:12: error: unknown key "api_kee" in `, shown: "  «api_kee»: …"},
	"rules":             {files: with(configWith(""), ".config/raddle/permissions.yaml", "alow: [fs_read]\n"), args: []string{"run", "./agent", "hi"}, code: 3, want: `permissions.yaml:1:1: error: unknown key "alow" in `, shown: "«alow»: …"},
	"transcript":        {files: with(configWith(""), "t.yaml", "- {txet: hi}\n"), args: []string{"run", "./agent", "hi"}, code: 3, want: `t.yaml:1:4: error: unknown key "txet" `, shown: "- {«txet»: hi}"},
}

// file returns an agent with one file.
func file(name, text string) map[string]string {
	return map[string]string{name: text, "t.yaml": "- {text: hi}\n"}
}

// graphWith returns a graph with a node a that is the start, and an end z.
func graphWith(a string) map[string]string {
	return file("graph.yaml", "name: g\nmodel: script:t.yaml\nstart: a\nnodes:\n  a: "+a+"\n  z: {type: end, output: done}\n")
}

// configWith returns an agent with more lines in its config.yaml.
func configWith(lines string) map[string]string {
	return file("config.yaml", "name: c\nmodel: script:t.yaml\n"+lines)
}

// with adds a file.
func with(files map[string]string, name, text string) map[string]string {
	files[name] = text
	return files
}

// Each mistake is reported at its place, with the line that it is in and what to do about it.
func TestBrokenFiles(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	for _, table := range []map[string]brokenFile{brokenGraphs, brokenAgents} {
		for name, b := range table {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				w := newWorkplace(t, "")
				for path, text := range b.files {
					if !strings.HasPrefix(path, ".config/") {
						path = "agent/" + path
					}
					w.write(path, text)
				}
				args := b.args
				if args == nil {
					args = []string{"check", "./agent"}
				}
				r := w.run(args...)
				text := r.out + r.err
				if r.code != b.code {
					t.Errorf("exit code %d, want %d", r.code, b.code)
				}
				_, after, found := strings.Cut(text, b.want)
				if !found {
					t.Fatalf("it says\n%s\nwithout %s", text, b.want)
				}
				_, after, _ = strings.Cut(after, "\n")
				line, after, _ := strings.Cut(after, "\n")
				carets, _, _ := strings.Cut(after, "\n")
				if got := markCarets(line, carets); got != b.shown {
					t.Errorf("it shows %q, want %q:\n%s", got, b.shown, text)
				}
				if strings.Contains(text, "sk-secret") {
					t.Errorf("it shows a secret:\n%s", text)
				}
			})
		}
	}
}

// markCarets returns the line of an excerpt with the word above the carets in «».
func markCarets(line, carets string) string {
	_, line, ok := strings.Cut(line, "| ")
	_, carets, below := strings.Cut(carets, "| ")
	from := strings.IndexByte(carets, '^')
	if !ok || !below || from < 0 {
		return ""
	}
	r := []rune(line)
	to := min(len([]rune(carets)), len(r))
	return string(r[:from]) + "«" + string(r[from:to]) + "»" + string(r[to:])
}
