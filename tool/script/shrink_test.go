package script

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// A long JSON result stays JSON with the names of its keys, and says that it was cut.
func TestLongJSONStaysJSON(t *testing.T) {
	testneed.RequirePrograms(t, "python3")
	h := surroundings(t)
	tl := one(t, h, "t.py", `def run(n: int, kind: str = "rows"):
    'T.'
    if kind == "text":
        return "x" * n
    if kind == "nested":
        v = {"leaf": "é" * n}
        for i in range(50):
            v = {"down": v}
        return v
    return {"total": n, "rows": [{"id": i, "name": "row %d" % i, "note": "é" * 200} for i in range(n)], "next": {"page": 2}, "text": "y" * n * 100}
`)
	for _, n := range []int{1, 200, 2000, 20000} {
		for _, kind := range []string{"rows", "nested"} {
			if n == 20000 && kind == "nested" {
				n = 2_000_000
			}
			got := call(t, tl, fmt.Sprintf(`{"n":%d,"kind":%q}`, n, kind)).Text()
			if !json.Valid([]byte(got)) || len(got) > h.outputLimit() {
				t.Fatalf("%s, %d: %d bytes, begins %.80s", kind, n, len(got), got)
			}
			long := strings.HasPrefix(got, `{"truncated":"the result is `)
			if want := kind == "rows" && n >= 200 || n == 2_000_000; long != want {
				t.Errorf("%s, %d: cut: %v", kind, n, long)
			}
			keys := []string{`"total":`, `"rows":[{"id":0,"name":"row 0"`, `"next":{"page":2}`, `"text":"yyy`}
			if kind == "nested" {
				keys = []string{`"down":`, `"leaf":"é`}
			}
			for _, key := range keys {
				if long && !strings.Contains(got, key) {
					t.Errorf("%s, %d: %s is missing in %.300s", kind, n, key, got)
				}
			}
		}
	}
	if got := call(t, tl, `{"n":100000,"kind":"text"}`).Text(); !strings.Contains(got, "bytes left out") {
		t.Errorf("%.100s", got)
	}
}

// Null is not a value of an option that need not be given.
func TestNullIsAbsent(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	h := surroundings(t)
	tl := one(t, h, "t.sh", "# @describe T.\n# @option --must! Any\n# @option --may Any\n# @option --with=x Any\nmain() { echo \"$argc_must ${argc_may-unset} $argc_with\" >>\"$LLM_OUTPUT\"; }\n")
	if got := call(t, tl, `{"must":"a","may":null,"with":null}`).Text(); got != `{"output":"a unset x\n"}` {
		t.Errorf("got %s", got)
	}
}

// Tools laid out like those of llm-functions find what lies in utils.
func TestUtilsBesideTools(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	const source = "ROOT_DIR=\"${LLM_ROOT_DIR:-none}\"\n# @describe T.\nmain() { bash \"$ROOT_DIR/utils/say.sh\" >>\"$LLM_OUTPUT\"; }\n"
	h := agent(t, map[string]string{"tools.sh": "# @cmd T.\nsay() { bash \"$LLM_ROOT_DIR/utils/say.sh\" >>\"$LLM_OUTPUT\"; }\n"})
	write(t, h.Functions, "utils/say.sh", "echo functions\n")
	if got := call(t, one(t, h, "t.sh", source), ``).Text(); got != `{"output":"functions\n"}` {
		t.Errorf("a global tool: %s", got)
	}
	if got := call(t, own(t, h)["say"], ``).Text(); got != `{"output":"functions\n"}` {
		t.Errorf("an agent's tool: %s", got)
	}
	h.Functions = ""
	write(t, h.Config, "utils/say.sh", "echo beside\n")
	if got := call(t, own(t, h)["say"], ``).Text(); got != `{"output":"beside\n"}` {
		t.Errorf("an agent's tool, without functions: %s", got)
	}
}
