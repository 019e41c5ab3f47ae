package permission_test

import (
	"slices"
	"testing"

	"raddle.dev/tool/permission"
)

func TestDecideHost(t *testing.T) {
	t.Parallel()
	parse := func(texts ...string) (list []permission.Rule) {
		for _, text := range texts {
			r, err := permission.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
		return list
	}
	p := permission.Policy{
		Workspace: t.TempDir(),
		Rules: []permission.Rules{{
			Allow: parse("any host(example.com)", "any host(*.open.example)", "any host(dev.example:8080)", "any host(any.example:*)", "any host(127.0.0.1:9000)", "any host(10.1.*)", "any host([::1]:9000)", "fetch_url_via_curl(other.example)"),
			Ask:   parse("any host(asked.open.example)"),
			Deny:  parse("any host(denied.open.example)"),
		}},
		Granted: parse("any host(granted.example)"),
	}
	for _, c := range []struct {
		host  string
		port  int
		want  permission.Verdict
		grant string
	}{
		{"example.com", 443, permission.Allow, ""},
		{"example.com", 80, permission.Allow, ""},
		{"example.com", 22, permission.Ask, "any host(example.com:22)"},
		{"www.example.com", 443, permission.Ask, "any host(www.example.com)"},
		{"example.com.evil.example", 443, permission.Ask, "any host(example.com.evil.example)"},
		{"a.open.example", 443, permission.Allow, ""},
		{"a.open.example", 8080, permission.Ask, "any host(a.open.example:8080)"},
		{"asked.open.example", 443, permission.Ask, "any host(asked.open.example)"},
		{"denied.open.example", 443, permission.Deny, ""},
		{"denied.open.example", 8080, permission.Deny, ""},
		{"dev.example", 8080, permission.Allow, ""},
		{"dev.example", 18080, permission.Ask, "any host(dev.example:18080)"},
		{"dev.example", 443, permission.Ask, "any host(dev.example)"},
		{"any.example", 5432, permission.Allow, ""},
		{"other.example", 443, permission.Ask, "any host(other.example)"},
		{"granted.example", 443, permission.Allow, ""},
		{"granted.example", 444, permission.Ask, "any host(granted.example:444)"},
		{"127.0.0.1", 9000, permission.Allow, ""},
		{"127.0.0.1", 443, permission.Ask, "any host(127.0.0.1)"},
		{"::1", 9000, permission.Allow, ""},
		{"::1", 443, permission.Ask, "any host(::1)"},
		{"10.1.2.3", 443, permission.Allow, ""},
		{"10.2.2.3", 443, permission.Ask, "any host(10.2.2.3)"},
		{"localhost", 443, permission.Ask, "any host(localhost)"},
	} {
		d := p.DecideHost("execute_command", c.host, c.port)
		if d.Verdict != c.want || c.grant != "" && !slices.Equal(d.Grant, []string{c.grant}) {
			t.Errorf("%s:%d: %s with the grant %q, want %s and %q", c.host, c.port, d.Verdict, d.Grant, c.want, c.grant)
		}
		if c.grant == "" {
			continue
		}
		after := p
		after.Granted = parse(c.grant)
		if d := after.DecideHost("execute_command", c.host, c.port); d.Verdict != permission.Allow {
			t.Errorf("%s:%d is not allowed by its grant %s: %q", c.host, c.port, c.grant, d.Reasons)
		}
	}
	everything := permission.Policy{Rules: []permission.Rules{{Allow: parse("any host(*)", "execute_command")}}}
	for host, want := range map[string]permission.Verdict{"example.com": permission.Allow, "169.254.169.254": permission.Ask, "localhost": permission.Ask, "64:ff9b::a00:1": permission.Ask} {
		if d := everything.DecideHost("execute_command", host, 443); d.Verdict != want {
			t.Errorf("%s with a rule for all hosts: %s", host, d.Verdict)
		}
	}
	everything.Mode = permission.ModePlan
	if d := everything.DecideHost("execute_command", "example.com", 443); d.Verdict != permission.Deny {
		t.Errorf("in the mode plan: %s", d.Verdict)
	}
}
