package script

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// showRaw is the body of a bash function that prints an option and the raw arguments.
const showRaw = `printf '%s|%s' "${argc_content-unset}" "$LLM_TOOL_RAW_JSON" >>"$LLM_OUTPUT"`

func TestRenamedArgumentsReachTheRawJSON(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tl := one(t, h, "save.sh", "# @describe Save.\n# @option --path!\n# @option --content!\nmain() { "+showRaw+"; }\n")
	for name, c := range map[string]struct{ args, want string }{
		"as declared": {`{"path":"p", "content":"x"}`, `x|{"path":"p", "content":"x"}`},
		"renamed":     {`{"path":"p","contents":"<x> & \"y\""}`, `<x> & "y"|{"content":"<x> & \"y\"","path":"p"}`},
	} {
		if got := shown(t, call(t, tl, c.args)); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
	// An argument with the declared name is not overwritten by the other one.
	if got := call(t, tl, `{"path":"p","content":"right","contents":"wrong"}`); !got.Error {
		t.Errorf("both names: got %s", got.Text())
	}
}

func TestRenamedArgumentsReachTheRawJSONOfAnAgentsTool(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := agent(t, map[string]string{"tools.sh": "# @cmd Save.\n# @option --contents!\nsave() { printf '%s' \"$LLM_AGENT_RAW_JSON\" >>\"$LLM_OUTPUT\"; }\n"})
	if got := call(t, own(t, h)["save"], `{"content":"x"}`).Text(); got != `{"contents":"x"}` {
		t.Errorf("got %s", got)
	}
}

// argumentsOf is the JSON text of an object whose only member has n letters.
func argumentsOf(t *testing.T, n int) string {
	t.Helper()
	args, err := json.Marshal(map[string]string{"x": strings.Repeat("x", n)})
	if err != nil {
		t.Fatal(err)
	}
	return string(args)
}

func TestLargeArgumentsAreInTheEnvironment(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tl := one(t, h, "t.sh", "# @describe T.\n# @option --x\nmain() { echo \"size ${#LLM_TOOL_RAW_JSON} $(cmp \"$LLM_TOOL_DATA_FILE\" <(printf %s \"$LLM_TOOL_RAW_JSON\") && echo same)\" >>\"$LLM_OUTPUT\"; }\n")
	for _, size := range []int{9, inlineLimit("windows"), inlineLimit(runtime.GOOS)} {
		want := fmt.Sprintf("size %d same\n", size)
		if got := shown(t, call(t, tl, argumentsOf(t, size-8))); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := inlineLimit("linux"); got != 120<<10 {
		t.Errorf("the limit of Linux is %d", got)
	}
}

func TestTooLargeArgumentsFailBeforeTheScriptRuns(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	ran := filepath.Join(h.Workspace, "ran")
	tl := one(t, h, "t.sh", "# @describe T.\n# @option --x\nmain() { touch ran; jq -r .x <<<\"$LLM_TOOL_RAW_JSON\"; }\n")
	got := call(t, tl, argumentsOf(t, 122_880))
	if !got.Error || !strings.Contains(got.Text(), "the arguments have 122888 bytes") || !strings.Contains(got.Text(), "Nothing was run") {
		t.Errorf("got %s", got.Text())
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the script ran")
	}
}

func TestScriptsThatReadTheDataFileTakeLargeArguments(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := agent(t, map[string]string{"tools.sh": "# @cmd T.\n# @option --x\nt() { echo \"${LLM_AGENT_RAW_JSON-none} ${#argc_x} $(wc -c <\"$LLM_TOOL_DATA_FILE\")\" >>\"$LLM_OUTPUT\"; }\n"})
	h.Env = append(h.Env, "LLM_TOOL_DATA_FILE=/outer")
	if got := shown(t, call(t, own(t, h)["t"], argumentsOf(t, 200_000))); got != "none 200000 200008\n" {
		t.Errorf("got %s", got)
	}
}
