package script

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
	"raddle.dev/tool"
)

const pythonTools = `import json, os, sys
from helper import word

def echo(text, tags: list[str] = None, n: int = 1):
    """Echoes."""
    return {"text": text, "tags": tags, "n": n, "word": word}

def getUser(name: str):
    """Camel case."""
    return name

def give(kind: str):
    """Returns a value of a kind."""
    return {"int": 7, "float": 1.5, "bool": True, "none": None, "list": ["é", 1], "set": {1}, "empty": ""}[kind]

def itself():
    """Writes its result itself."""
    with open(os.environ["LLM_OUTPUT"], "w") as f:
        f.write("written")

def spread(first, /, second, *rest: str, **more):
    """Takes everything."""
    return [first, second, list(rest), more]

def save(path: str, content: str):
    """Saves."""
    return content

def fails():
    """Fails."""
    print("on the way")
    raise ValueError("no such thing")

def leaves():
    """Leaves."""
    sys.exit("not today")

def _instructions():
    """Says what to do."""
    return "Do it for " + os.environ["LLM_AGENT_VAR_USER_NAME"]
`

// agent is a host with an agent that has these files.
func agent(t *testing.T, files map[string]string) *Host {
	t.Helper()
	h := surroundings(t)
	h.Agent = &Agent{Name: "my-agent", Dir: filepath.Join(h.Config, "agents", "my-agent"), Variables: map[string]string{"user-name": "Ann"}}
	for name, text := range files {
		write(t, h.Agent.Dir, name, text)
	}
	return h
}

// own are the agent's own tools by name.
func own(t *testing.T, h *Host) map[string]tool.Tool {
	t.Helper()
	tools, problems := h.OwnTools()
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	all := map[string]tool.Tool{}
	for _, tl := range tools {
		all[tl.Name] = tl
	}
	return all
}

func TestPython(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	h := agent(t, map[string]string{"tools.py": pythonTools, "helper.py": "word = 'beside'\n"})
	tools := own(t, h)
	write(t, h.Workspace, "json.py", "raise SystemExit('the workspace was imported')\n")
	for name, c := range map[string]struct{ tool, args, want string }{
		"keywords":    {"echo", `{"text":"-a=b\"'\n日本","tags":["","x"]}`, `{"text":"-a=b\"'\n日本","tags":["","x"],"n":1,"word":"beside"}`},
		"null":        {"echo", `{"text":null}`, `{"text":null,"tags":null,"n":1,"word":"beside"}`},
		"camel case":  {"getuser", `{"name":"x"}`, `{"output":"x"}`},
		"int":         {"give", `{"kind":"int"}`, `7`},
		"float":       {"give", `{"kind":"float"}`, `1.5`},
		"bool":        {"give", `{"kind":"bool"}`, `{"output":"True"}`},
		"none":        {"give", `{"kind":"none"}`, `"DONE"`},
		"list":        {"give", `{"kind":"list"}`, `["é",1]`},
		"other types": {"give", `{"kind":"set"}`, `"DONE"`},
		"empty":       {"give", `{"kind":"empty"}`, `"DONE"`},
		"itself":      {"itself", `{}`, `{"output":"written"}`},
		"spread":      {"spread", `{"first":1,"second":2,"rest":["a","b"],"more":"{\"k\":3}"}`, `[1,2,["a","b"],{"k":3}]`},
		"twin":        {"save", `{"path":"p","contents":"c"}`, `{"output":"c"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := call(t, tools[c.tool], c.args); got.Text() != c.want || got.Error {
				t.Errorf("got  %s\nwant %s", got.Text(), c.want)
			}
		})
	}
	for name, c := range map[string]struct{ tool, args, want string }{
		"unknown argument": {"echo", `{"text":"a","colour":"b"}`, "echo has no argument `colour`: its arguments are `text`, `tags`, `n`"},
		"missing argument": {"echo", `{}`, "the argument `text` is missing: it must be a text"},
		"exception":        {"fails", `{}`, `ValueError: no such thing","stdout":"on the way"}`},
		"exit":             {"leaves", `{}`, `"stderr":"not today"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := call(t, tools[c.tool], c.args)
			if !got.Error || !strings.Contains(got.Text(), c.want) || strings.Contains(got.Text(), "run.py") {
				t.Errorf("got %s", got.Text())
			}
		})
	}
	if _, err := os.Stat(filepath.Join(h.Agent.Dir, "__pycache__")); err == nil {
		t.Error("a directory was left beside the agent's files")
	}
}

func TestPythonOfTheWorkspace(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	write(t, h.Workspace, ".venv/bin/python", "#!/usr/bin/env bash\nprintf virtual >\"$LLM_OUTPUT\"\n")
	if err := os.Chmod(filepath.Join(h.Workspace, ".venv/bin/python"), 0o755); err != nil {
		t.Fatal(err)
	}
	tl := one(t, h, "t.py", "def run():\n    'T.'\n    return 'system'\n")
	if got := call(t, tl, ``).Text(); got != `{"output":"system"}` {
		t.Errorf("nobody has consented to the interpreter of the workspace: got %s", got)
	}
	for _, dir := range []string{h.Workspace, filepath.Join(h.Workspace, ".venv")} {
		h.Packages = []string{t.TempDir(), dir}
		if got := call(t, tl, ``).Text(); got != `{"output":"virtual"}` {
			t.Errorf("with the packages of %s: got %s", dir, got)
		}
	}
}

func TestExtraTypeScript(t *testing.T) {
	testneed.RequirePrograms(t, "tsx")
	h := agent(t, map[string]string{"tools.ts": `import { word } from "./helper";
/** Echoes. */
export function echo(text: string, n: number = 2, tags?: string[]): object {
  return { text, n, tags, word };
}
/** Waits. */
export async function soon(): Promise<string> { return "a" + await Promise.resolve("b"); }
/** Fails. */
export function fails() { throw new Error("no such thing"); }
/** Nothing. */
export function nothing(): void {}
`, "helper.ts": "export const word: string = 'beside';\n"})
	h.Env = append(h.Env, "npm_config_update_notifier=false")
	tools := own(t, h)
	for name, c := range map[string]struct{ tool, args, want string }{
		"by name": {"echo", `{"tags":["x",""],"text":"-a=\"'\n日本"}`, `{"text":"-a=\"'\n日本","n":2,"tags":["x",""],"word":"beside"}`},
		"promise": {"soon", `{}`, `{"output":"ab"}`},
		"nothing": {"nothing", `{}`, `"DONE"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := call(t, tools[c.tool], c.args); got.Text() != c.want || got.Error {
				t.Errorf("got  %s\nwant %s", got.Text(), c.want)
			}
		})
	}
	if got := call(t, tools["fails"], `{}`); !got.Error || !strings.Contains(got.Text(), "no such thing") {
		t.Errorf("got %s", got.Text())
	}
}

func TestInstructions(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	testneed.RequirePrograms(t, "python3")
	for name, c := range map[string]struct {
		file, source, stdin, want, fails string
	}{
		"python":   {"tools.py", pythonTools, "", "Do it for Ann", ""},
		"bash":     {"tools.sh", "# @cmd\n_instructions() { read -r x; echo \"$x for $LLM_AGENT_VAR_USER_NAME\" >>\"$LLM_OUTPUT\"; }\n", "Work\n", "Work for Ann\n", ""},
		"nothing":  {"tools.sh", "# @cmd\n_instructions() { :; }\n", "", "", "No return value from '_instructions' function"},
		"failure":  {"tools.sh", "# @cmd\n_instructions() { echo why >&2; exit 2; }\n", "", "", "exit code 2: why"},
		"no such":  {"tools.sh", "# @cmd Does it.\nother() { :; }\n", "", "", "there is no function '_instructions' in "},
		"no tools": {"README.md", "", "", "", "the agent has no file of tools"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{c.file: c.source, "helper.py": "word = ''\n"}
			h := agent(t, files)
			tools, _ := h.OwnTools()
			for _, tl := range tools {
				if strings.Contains(tl.Name, "instructions") {
					t.Errorf("%s is offered", tl.Name)
				}
			}
			got, err := h.Instructions(t.Context(), typed(t, c.stdin))
			if got != c.want || (err == nil) != (c.fails == "") || err != nil && !strings.Contains(err.Error(), c.fails) {
				t.Errorf("got %q, %v", got, err)
			}
			if none := name == "no such" || name == "no tools"; none != errors.Is(err, ErrNoInstructions) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// typed is a terminal on which a person types a text; nil: there is none.
func typed(t *testing.T, text string) *Terminal {
	t.Helper()
	if text == "" {
		return nil
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	if _, err := w.WriteString(text); err != nil {
		t.Fatal(err)
	}
	w.Close()
	return &Terminal{In: r, Out: os.Stderr}
}

func TestFilesOfTools(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	say := "# @describe Says.\nmain() { basename \"$0\" >>\"$LLM_OUTPUT\"; }\n"
	for _, name := range []string{"both.sh", "shell.sh", "one.sh", "two.sh"} {
		write(t, h.Functions, "tools/"+name, say)
	}
	write(t, h.Functions, "tools/both.py", "def run():\n    'Says.'\n    return 'python'\n")
	write(t, h.Functions, "tools/broken.sh", "# @describe Broken.\n# @option\nmain() { :; }\n")
	write(t, h.Config, "outside.sh", say)

	names := []string{"both", "both.py", "shell.sh", "pair", "broken", "absent", "../../outside.sh", "shell"}
	tools, problems := h.GlobalTools(names, map[string]string{"pair": "one, two.sh", "both": "one"})
	var got []string
	for _, tl := range tools {
		got = append(got, tl.Name)
	}
	if want := "both shell one two"; strings.Join(got, " ") != want {
		t.Errorf("got %v, want %s", got, want)
	}
	for i, want := range []string{"both.sh declares it already", "syntax error at line 2", "absent.sh", "outside.sh"} {
		if i >= len(problems) || !strings.Contains(problems[i].String(), want) {
			t.Errorf("problem %d: want %q in %v", i, want, problems)
		}
	}

	if tools, problems = (&Host{}).GlobalTools([]string{"both"}, nil); tools != nil || len(problems) != 1 {
		t.Errorf("without a directory: %v %v", tools, problems)
	}

	a := agent(t, map[string]string{"tools.py": pythonTools, "tools.sh": "# @cmd Adds.\n# raddle: read-only\nadd-up_() { echo sum >>\"$LLM_OUTPUT\"; }\n"})
	mine := own(t, a)
	if tl := mine["add_up"]; len(mine) != 1 || tl.Effect != tool.ReadOnly || !tl.Parallel || call(t, tl, `{}`).Text() != `{"output":"sum\n"}` {
		t.Errorf("%v", mine)
	}
	if list, problems := surroundings(t).OwnTools(); list != nil || problems != nil {
		t.Error("there are tools without an agent", list, problems)
	}
}

// TestSharedFilesOfAgents is how agents share functions: by a file in the directory above them,
// found from the root.
func TestSharedFilesOfAgents(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := agent(t, map[string]string{"tools.sh": `#!/usr/bin/env bash
set -eo pipefail
source "$LLM_PROMPT_UTILS_FILE"
source "$LLM_ROOT_DIR/agents/.shared/utils.sh"
export AUTO_CONFIRM=true

# @env LLM_OUTPUT=/dev/stdout
# @env LLM_AGENT_VAR_PROJECT_DIR=.
# @describe Tools of an agent

_project_dir() { (cd "${LLM_AGENT_VAR_PROJECT_DIR:-.}" && pwd); }

# @cmd Build the project
run_build() {
	info "in $(_project_dir)" >> "$LLM_OUTPUT"
	local output
	if output=$(build 2>&1); then
		green "BUILD SUCCESS" >> "$LLM_OUTPUT"
	else
		error "BUILD FAILED" >> "$LLM_OUTPUT"
		echo "$output" >> "$LLM_OUTPUT"
		return 1
	fi
}
`})
	write(t, h.Config, "agents/.shared/utils.sh", "set -euo pipefail\nbuild() { echo 'no compiler'; return 1; }\n")
	got := call(t, own(t, h)["run_build"], `{}`)
	want := `{"tool_call_error":"Tool call 'run_build' exited with code 1","output":"INFO: in ` + h.Workspace + `\nERROR: BUILD FAILED\nno compiler"}`
	if got.Text() != want || !got.Error {
		t.Errorf("got  %s\nwant %s", got.Text(), want)
	}
}
