package script

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/testkit/testneed"
)

// printEnv is a tool that tells its environment.
const printEnv = `{ env -0 | sort -z | tr '\0' '\n'; echo "cwd=$PWD"; echo "stdin=$(cat)"; } >"$LLM_OUTPUT"`

// seen is the environment that a tool told, without what differs from run to run.
func seen(t *testing.T, h *Host, text string) map[string]string {
	t.Helper()
	vars := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		value = strings.ReplaceAll(value, h.Config, "<config>")
		vars[name] = strings.ReplaceAll(value, os.Getenv("PATH"), "<PATH>")
	}
	for _, name := range []string{"LLM_OUTPUT", "LLM_PROMPT_UTILS_FILE", "LLM_TOOL_DATA_FILE"} {
		if !filepath.IsAbs(vars[name]) {
			t.Errorf("%s is %q", name, vars[name])
		}
		delete(vars, name)
	}
	if vars["cwd"] != h.Workspace {
		t.Errorf("it ran in %s, not in %s", vars["cwd"], h.Workspace)
	}
	for _, name := range []string{"cwd", "PWD", "SHLVL", "_", "OLDPWD", "HOME"} {
		delete(vars, name)
	}
	return vars
}

// common is what every tool sees.
func common(more map[string]string) map[string]string {
	all := map[string]string{"TERM": "xterm-256color", "CLICOLOR_FORCE": "1", "FORCE_COLOR": "1", "AUTO_CONFIRM": "true",
		"RADDLE_IDEMPOTENCY_KEY": "key-1", "stdin": ""}
	for name, value := range more {
		all[name] = value
	}
	return all
}

func TestEnvironment(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	t.Setenv("NOT_HANDED_IN", "secret")
	global := "# @describe T.\n# @option --x\nmain() { " + printEnv + "; }\n"

	h := surroundings(t)
	h.Env = append(h.Env, "LLM_AGENT_NAME=outer", "LLM_AGENT_RAW_JSON={}", "LLM_TOOL_NAME=outer", "RADDLE_IDEMPOTENCY_KEY=outer")
	if diff := cmp.Diff(common(map[string]string{
		"LLM_ROOT_DIR": "<config>/functions", "LLM_TOOL_NAME": "t-x", "LLM_TOOL_CACHE_DIR": "<config>/functions/cache/t-x",
		"PATH": "<config>/functions/bin:<PATH>", "LLM_TOOL_RAW_JSON": `{"x":"1"}`,
	}), seen(t, h, shown(t, call(t, one(t, h, "t-x.sh", global), `{"x":"1"}`)))); diff != "" {
		t.Errorf("a global tool (-want +got):\n%s", diff)
	}

	h = agent(t, map[string]string{"tools.sh": "# @cmd T.\n# @option --x\nget-it() { " + printEnv + "; }\n"})
	if diff := cmp.Diff(common(map[string]string{
		"LLM_ROOT_DIR": "<config>/agents/my-agent", "LLM_TOOL_NAME": "t-x", "LLM_TOOL_CACHE_DIR": "<config>/agents/my-agent/cache/t-x",
		"PATH": "<config>/agents/my-agent/bin:<PATH>", "LLM_TOOL_RAW_JSON": `{"x":"1"}`, "LLM_AGENT_VAR_USER_NAME": "Ann",
	}), seen(t, h, shown(t, call(t, one(t, h, "t-x.sh", global), `{"x":"1"}`)))); diff != "" {
		t.Errorf("a global tool of an agent (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(common(map[string]string{
		"LLM_ROOT_DIR": "<config>", "LLM_AGENT_NAME": "my-agent", "LLM_AGENT_FUNC": "get_it",
		"LLM_AGENT_ROOT_DIR": "<config>/agents/my-agent", "LLM_AGENT_CACHE_DIR": "<config>/cache/my-agent",
		"PATH": "<config>/agents/my-agent/bin:<PATH>", "LLM_AGENT_RAW_JSON": `{"x":"1"}`, "LLM_AGENT_VAR_USER_NAME": "Ann",
	}), seen(t, h, shown(t, call(t, own(t, h)["get_it"], `{"x":"1"}`)))); diff != "" {
		t.Errorf("a tool of an agent (-want +got):\n%s", diff)
	}
}

func TestEnvironmentFiles(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := agent(t, map[string]string{
		"tools.sh": "# @cmd T.\nt() { " + printEnv + "; }\n",
		".env":     "# a comment\nexport NEAR=agent\nQUOTED=\"a b # c\"\nSINGLE='x'\nNOT_RUN=$(echo run) `x` ${HOME}\nPROCESS=file\nbroken line\n =x\nEMPTY=\nSPACED = v \n",
	})
	write(t, h.Config, ".env", "NEAR=config\nFAR=config\nLLM_ROOT_DIR=/elsewhere\n")
	h.Env = append(h.Env, "PROCESS=process", "TERM=vt100")
	vars := seen(t, h, shown(t, call(t, own(t, h)["t"], `{}`)))
	for name, want := range map[string]string{"NEAR": "agent", "FAR": "config", "QUOTED": "a b # c", "SINGLE": "x", "PROCESS": "process",
		"NOT_RUN": "$(echo run) `x` ${HOME}", "EMPTY": "", "SPACED": "v", "TERM": "vt100", "LLM_ROOT_DIR": "<config>"} {
		if got, ok := vars[name]; got != want || !ok {
			t.Errorf("%s: got %q, %v; want %q", name, got, ok, want)
		}
	}
	write(t, h.Workspace, "own.env", "FROM_META=yes\n")
	tl := one(t, h, "t.sh", "# @describe T.\n# @meta dotenv own.env\nmain() { echo \"$FROM_META $NEAR\" >>\"$LLM_OUTPUT\"; }\n")
	if got := call(t, tl, `{}`).Text(); got != `{"output":"yes agent\n"}` {
		t.Errorf("got %s", got)
	}
}

func TestEnvironmentIsSorted(t *testing.T) {
	e := &environment{vars: map[string]string{"B": "2", "A": "1", "C": "3"}}
	if got := e.sortedPairs(); !slices.IsSorted(got) || len(got) != 3 {
		t.Errorf("got %v", got)
	}
}
