//go:build unix

package mcp

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"raddle.dev/tool"
)

// TestExampleServer uses the server of the examples as an assistant would.
func TestExampleServer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "shop")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "raddle.dev/examples/assistant/server") // as make build compiles it
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	f, err := Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{"shop":{"command":%q}}}`, program))
	if err != nil {
		t.Fatal(err)
	}
	all := tools(t, open(t, f, Options{}), "shop")
	for name, effect := range map[string]tool.Effect{
		"mcp__shop__find_items": tool.ReadOnly, "mcp__shop__check_stock": tool.ReadOnly, "mcp__shop__reserve": tool.Idempotent, "mcp_invoke_shop": tool.Idempotent,
	} {
		if all[name].Effect != effect {
			t.Errorf("%s is %q, want %q", name, all[name].Effect, effect)
		}
	}
	want(t, run(t, all["mcp__shop__find_items"], `{"words":"raddle 60"}`), false, `{"items":[{"name":"Raddle, 60 cm","pieces":12,"sku":"R-210"}]}`)
	want(t, run(t, all["mcp__shop__reserve"], `{"sku":"R-210","customer":"Ada","pieces":5}`), false, `"reserved":5`)
	want(t, run(t, all["mcp__shop__reserve"], `{"sku":"R-210","customer":"Bob","pieces":8}`), true, "7 are free")
	want(t, run(t, all["mcp__shop__reserve"], `{"sku":"R-210","customer":"Ada","pieces":12}`), false, `"reserved":12`)
	want(t, run(t, all["mcp__shop__check_stock"], `{"sku":"X"}`), true, `there is no item "X"`)
	want(t, run(t, all["mcp__shop__check_stock"], `{}`), true, "sku")
}
