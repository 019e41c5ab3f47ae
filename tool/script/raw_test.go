package script

import (
	"testing"

	"raddle.dev/internal/testneed"
)

// showRaw is the body of a bash function that prints an option and the raw arguments.
const showRaw = `printf '%s|%s' "${argc_content-unset}" "$LLM_TOOL_RAW_JSON" >>"$LLM_OUTPUT"`

func TestRenamedArgumentsReachTheRawJSON(t *testing.T) {
	testneed.Programs(t, "bash")
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
	testneed.Programs(t, "bash")
	h := agent(t, map[string]string{"tools.sh": "# @cmd Save.\n# @option --contents!\nsave() { printf '%s' \"$LLM_AGENT_RAW_JSON\" >>\"$LLM_OUTPUT\"; }\n"})
	if got := call(t, own(t, h)["save"], `{"content":"x"}`).Text(); got != `{"contents":"x"}` {
		t.Errorf("got %s", got)
	}
}
