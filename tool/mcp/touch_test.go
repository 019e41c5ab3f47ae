//go:build unix

package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/tool"
	"raddle.dev/tool/permission"
)

// TestInvokeRepeatsAsItsToolDoes: a call of mcp_invoke may be made again exactly if the tool
// that it names may, whatever else the server has.
func TestInvokeRepeatsAsItsToolDoes(t *testing.T) {
	all := tools(t, open(t, entry(t, "good"), Options{}), "good")
	invoke := all["mcp_invoke_good"]
	for name, want := range map[string]bool{"echo": true, "die": false, "fail": true, "nope": false} {
		if got := invoke.MayRepeat(json.RawMessage(`{"tool":"` + name + `"}`)); got != want {
			t.Errorf("a call of %s may be repeated: %v, want %v", name, got, want)
		}
		if direct, ok := all["mcp__good__"+name]; ok && direct.MayRepeat(nil) != want {
			t.Errorf("a direct call of %s may be repeated: %v, want %v", name, !want, want)
		}
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"tool":7}`} {
		if invoke.MayRepeat(json.RawMessage(bad)) {
			t.Errorf("a call with %q may be repeated", bad)
		}
	}
}

// A call of a server's tool asks unless the tool says that it reads, and stays on
// this machine. The same call through mcp_invoke asks alike, whatever else the server
// has, and the rules for either name hold for both.
func TestWhatServersDeclareDecides(t *testing.T) {
	all := tools(t, open(t, entry(t, "good"), Options{}), "good")
	url := `{"url":"https://pkg.go.dev/x"}`
	for _, c := range []struct {
		rules      string
		tool, args string
		want       permission.Verdict
		why        string
	}{
		{"", "echo", `{}`, permission.Allow, ""},
		{"", "die", `{}`, permission.Ask, "has no annotations"},
		{"", "fail", `{}`, permission.Ask, "may change something"},
		{"", "show", `{}`, permission.Ask, ""},
		{"", "fetch", url, permission.Ask, "pkg.go.dev is on the network"},
		{"", "fetch", `{"say":"x"}`, permission.Ask, "does not say where"},
		{"", "nope", `{}`, permission.Ask, "has not listed"},
		{"allow: [mcp__good__*]", "fetch", url, permission.Allow, ""},
		{"allow: [mcp__good__*]", "show", `{}`, permission.Allow, ""},
		{"allow: [any host(pkg.go.dev)]", "fetch", url, permission.Allow, ""},
		{"allow: [any host(pkg.go.dev)]", "fetch", `{"url":"https://pkg.go.dev/ https://other.example/"}`, permission.Ask, ""},
		{"allow: [any host(pkg.go.dev)]", "fetch", `{"url":"https://pkg.go.dev/","via":["https://other.example"]}`, permission.Ask, "other.example"},
		{"allow: [any host(pkg.go.dev)]", "show", url, permission.Ask, ""},
		{"allow: [mcp__good__fetch(pkg.go.dev)]", "fetch", url, permission.Allow, ""},
		{"deny: [mcp__good__echo]", "echo", `{}`, permission.Deny, ""},
		{"deny: [mcp__good__echo(say=*secret*)]", "echo", `{"say":"a secret"}`, permission.Deny, ""},
		{"deny: [any host(pkg.go.dev)]", "fetch", url, permission.Deny, ""},
		{"{allow: [mcp_*], ask: [mcp__good__echo]}", "echo", `{}`, permission.Ask, ""},
	} {
		rules, err := permission.LoadRules("rules", []byte(c.rules))
		if err != nil {
			t.Fatal(err)
		}
		policy := permission.Policy{Workspace: t.TempDir(), Rules: []permission.Rules{rules}}
		invoke := `{"tool":"` + c.tool + `","arguments":` + c.args + `}`
		for name, args := range map[string]string{"mcp__good__" + c.tool: c.args, "mcp_invoke_good": invoke} {
			if all[name].Name == "" {
				continue
			}
			d, err := policy.Decide(t.Context(), all[name], tool.Call{Args: json.RawMessage(args)})
			if err != nil || d.Verdict != c.want || !strings.Contains(strings.Join(d.Reasons, "\n"), c.why) {
				t.Errorf("%s %s with %q: %v %q %v, want %v %q", name, args, c.rules, d.Verdict, d.Reasons, err, c.want, c.why)
			}
		}
	}
}

// What "this run" grants for one call through mcp_invoke is not all of the server.
func TestAGrantForOneToolIsNotTheServer(t *testing.T) {
	all := tools(t, open(t, entry(t, "good"), Options{}), "good")
	policy := permission.Policy{Workspace: t.TempDir()}
	decide := func(args string) permission.Decision {
		d, err := policy.Decide(t.Context(), all["mcp_invoke_good"], tool.Call{Args: json.RawMessage(args)})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, args := range []string{`{"tool":"fetch","arguments":{}}`, `{"tool":"die"}`} {
		policy.Granted = nil
		for _, text := range decide(args).Grant {
			r, err := permission.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			policy.Granted = append(policy.Granted, r)
		}
		if d := decide(args); len(policy.Granted) == 0 || d.Verdict != permission.Allow {
			t.Errorf("%s asks again after %v: %q", args, policy.Granted, d.Reasons)
		}
		if d := decide(`{"tool":"show"}`); d.Verdict != permission.Ask {
			t.Errorf("%v allows another tool", policy.Granted)
		}
	}
}

// Results and descriptions of servers lose terminal escapes and NUL characters.
func TestResultsWithoutEscapes(t *testing.T) {
	all := tools(t, open(t, entry(t, "escapes"), Options{}), "escapes")
	if got := all["mcp__escapes__paint"].Description; got != "Paints red." {
		t.Errorf("description %q", got)
	}
	want(t, run(t, all["mcp__escapes__paint"], `{}`), false, "abc\nd\nResource e: file:///y\n{\"k\":[\"fg\"]}")
	for name, args := range map[string]string{"mcp_invoke_escapes": `{"tool":"paint"}`, "mcp__escapes__paint": `{}`} {
		if got := run(t, all[name], args).Text(); strings.ContainsAny(got, "\x1b\x00") || strings.Contains(got, `\u00`) || !strings.Contains(got, "abc") || !strings.Contains(got, "fg") {
			t.Errorf("%s: %q", name, got)
		}
	}
}
