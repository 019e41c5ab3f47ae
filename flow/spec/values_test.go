package spec

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/base/jsonvalue"
)

func TestSpans(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "2h30m": 150 * time.Minute, "3d": 72 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0,
		"0s": 0, "1d0s": 24 * time.Hour, "1.5h": 90 * time.Minute,
		"106751d": 106751 * 24 * time.Hour, "106751d23h47m16.854775807s": 1<<63 - 1,
	} {
		if got, err := ParseSpan(text); got != want || err != nil {
			t.Errorf("%s is %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "0", "5", "d", "-1s", "+1s", "1d-1h", "1d+1h", "-1d", "1.5d", "1d2d", "1h1d", "106752d",
		"106751d23h47m16.854775808s", "1d0", "1d ", " 1d", "1 h", "soon",
	} {
		if got, err := ParseSpan(text); got != 0 || err == nil ||
			!strings.HasPrefix(err.Error(), "`"+text+"` is not a duration") {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
}

func TestMoments(t *testing.T) {
	zone := time.FixedZone("here", 2*3600)
	for text, want := range map[string]string{
		"2026-12-24": "2026-12-23T22:00:00Z", "2026-12-24T18:00:00+01:00": "2026-12-24T17:00:00Z",
		"2024-02-29": "2024-02-28T22:00:00Z",
	} {
		if got, err := ParseMoment(text, zone); err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("%s is %v, %v, want %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "2026-02-29", "2026-12-24 18:00", "2026-12-24T18:00:00", "24.12.2026", "tomorrow",
	} {
		if _, err := ParseMoment(text, zone); err == nil || !strings.Contains(err.Error(), "`"+text+"` is not a time") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Times in a file are checked unless they have placeholders, and a deadline leads where its node says.
func TestTimesOfNodes(t *testing.T) {
	for fields, want := range map[string]string{
		"for: soon":                    "4:24 nodes.a.for: invalid value: `soon` is not a duration: write for example 90s, 2h30m or 3d",
		"for: '{{how}} long'":          "",
		"for: [1s]":                    "4:24 nodes.a.for: invalid type: sequence, expected a string",
		"until: tomorrow":              "4:26 nodes.a.until: invalid value: `tomorrow` is not a time: write for example 2026-12-24T18:00:00+01:00, or 2026-12-24 for its beginning",
		"deadline: 2h, on_deadline: e": "",
		"deadline: 2h, on_deadline: {answer: '{{x}}'}": "",
		"on_deadline: e":                                "4:32 nodes.a.on_deadline: invalid value: there is no `deadline` after which it could happen; add for example `deadline: 48h`",
		"deadline: 2h, on_deadline: {anwser: x}":        "4:46 nodes.a.on_deadline: invalid value: expected `answer: TEXT`, the id of a node, or fail (did you mean `answer`?)",
		"deadline: 2h, on_deadline: {}":                 "4:46 nodes.a.on_deadline: invalid value: expected `answer: TEXT`, the id of a node, or fail",
		"deadline: 2h, on_deadline: {answer: x, to: e}": "4:46 nodes.a.on_deadline: invalid value: expected `answer: TEXT`, the id of a node, or fail",
		"deadline: -2h":                                 "4:29 nodes.a.deadline: invalid value: `-2h` is not a duration: write for example 90s, 2h30m or 3d",
	} {
		_, err := Parse("graph.yaml", []byte("name: g\nstart: a\nnodes:\n  a: {type: wait, "+fields+"}\n  e: {type: end}\n"), testKinds)
		if got := listProblems(nil, err); got != want {
			t.Errorf("%s\n got %s\nwant %s", fields, got, want)
		}
	}
	for then, want := range map[string]string{
		"fail": `"" false []`, "e": `"e" false [e]`, "{answer: ''}": `"" true []`,
	} {
		n := parseNodes(t, "  a: {type: wait, deadline: '{{x}}', on_deadline: "+then+"}\n  e: {type: end}\n").Node("a")
		var to []string
		for _, e := range n.FollowedEdges() {
			to = append(to, e.To)
		}
		d := n.Body.(Deadline)
		if got := fmt.Sprintf("%q %t %v", d.To, d.HasAnswer, to); got != want || d.After.Text != "{{x}}" {
			t.Errorf("%s: %s, want %s", then, got, want)
		}
	}
}

// What a value of a scope lacks is empty also in a strict template; a scope itself has no value.
func TestScopes(t *testing.T) {
	lookup := state(t, `{"user":{"name":"Ada","tags":["a","b"],"deep":{"x":1}},"app":{}}`)
	scoped := func(key string) (any, bool) {
		v, ok := lookup(key)
		o, _ := v.(*jsonvalue.Object)
		return Scope{Values: o}, ok
	}
	for text, want := range map[string]string{
		"{{user.name}}": "Ada", "{{user.tags[1]}}": "b", "{{user.deep.x}}": "1", "<{{user.none}}>": "<>",
		"<{{user.none.x[0]}}>": "<>", "<{{app.name}}>": "<>",
	} {
		if got, err := ParseTemplate(text).Render(scoped); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"{{user}}", "{{user.name.x}}", "{{user.tags[2]}}", "{{user.deep.y}}", "{{group.x}}"} {
		if got, err := ParseTemplate(text).Render(scoped); err == nil {
			t.Errorf("%s is %q", text, got)
		}
	}
	for path, want := range map[string]string{
		"user.name": "user name", "app.a.b": "app a", "user": " ", "user[0].a": " ", "users.name": " ",
		"user.name]": " ", "name.user": " ",
	} {
		p := parsePath(path)
		if scope, key := p.ScopedKey(); scope+" "+key != want {
			t.Errorf("%s is %q of %q, want %s", path, key, scope, want)
		}
	}
}

// A rendered text is never larger than its limit, wherever its bytes come from.
func TestTemplateLimits(t *testing.T) {
	lookup := state(t, `{"a":"12345","list":[1,2,3],"e":""}`)
	for _, text := range []string{
		"{{a}}", "{{a}}{{list}}", "ab{{a}}", "{{a}}cd", "plain", "{{e}}tail", "{{list}} {{e}}",
	} {
		tmpl := ParseTemplate(text)
		want := tmpl.RenderLenient(lookup)
		for _, limit := range []int{0, -1, len(want), len(want) + 1} {
			if got, err := tmpl.RenderStrictWithin(lookup, limit); got != want || err != nil {
				t.Errorf("%s within %d is %q, %v", text, limit, got, err)
			}
		}
		for limit := 1; limit < len(want); limit++ {
			got, err := tmpl.RenderLenientWithin(lookup, limit)
			if tooLarge, ok := errors.AsType[*ValueSizeError](err); got != "" || !ok || tooLarge.Limit != limit {
				t.Errorf("%s within %d is %q, %v", text, limit, got, err)
			}
		}
	}
	_, err := ParseTemplate("{{none}}{{a}}").RenderStrictWithin(lookup, 1)
	if _, ok := errors.AsType[*MissingError](err); !ok {
		t.Errorf("what is missing is reported before what is too large: %v", err)
	}
	for limit, want := range map[int]string{1: "1 bytes", 16 << 20: "16 MiB", 1<<20 + 1: "1048577 bytes"} {
		if text := (&ValueSizeError{limit}).Error(); !strings.Contains(text, "larger than "+want+":") {
			t.Error(text)
		}
	}
}

// Each reducer says which of its two values it does not accept; null is a value.
func TestReducersRefuse(t *testing.T) {
	values := map[string]any{
		"null": nil, "bool": true, "number": int64(1), "string": "x", "array": []any{"y"},
		"object": &jsonvalue.Object{},
	}
	accepts := map[string][2]string{
		"append": {"array", "null bool number string array object"}, "extend": {"array", "array"},
		"concat": {"string", "string"}, "sum": {"number", "number"}, "max": {"number", "number"},
		"min": {"number", "number"}, "merge": {"object", "object"},
		"overwrite": {"null bool number string array object", "null bool number string array object"},
	}
	for _, name := range ReducerNames {
		for current, old := range values {
			for incoming, v := range values {
				before := jsonvalue.Compact([]any{old, v})
				_, err := ReducersByKey[name](old, true, v)
				want := ""
				switch {
				case !strings.Contains(accepts[name][0], current):
					want = "for the current value, got " + current
				case !strings.Contains(accepts[name][1], incoming):
					want = "for the incoming value, got " + incoming
				}
				if (err == nil) != (want == "") || err != nil && (!strings.HasSuffix(err.Error(), want) ||
					!strings.HasPrefix(err.Error(), "reducer '"+name+"' requires ")) {
					t.Errorf("%s of %s and %s: %v, want %q", name, current, incoming, err, want)
				}
				if after := jsonvalue.Compact([]any{old, v}); after != before {
					t.Errorf("%s has changed %s to %s", name, before, after)
				}
			}
		}
	}
}

func TestPredicatesAtTheirLimits(t *testing.T) {
	for op, want := range map[string][3]bool{
		">": {false, false, true}, ">=": {false, true, true}, "==": {false, true, false}, "<=": {true, true, false},
		"<": {true, false, false},
	} {
		for i, input := range []string{"é", "éa", "éaa"} { // 2 to 4 bytes
			expr := " len(input)" + op + "3 "
			err := ValidateInput(expr, input)
			if (err == nil) != want[i] || err != nil &&
				err.Error() != fmt.Sprintf("Input failed validation '%s' (got %d chars)", expr, i+1) {
				t.Errorf("%s of %q: %v", expr, input, err)
			}
		}
	}
	if err := ValidateInput("len(input) > 18446744073709551616", ""); err == nil {
		t.Error("a limit above 64 bits is accepted")
	}
}

func TestToolStems(t *testing.T) {
	for name, want := range map[string]string{
		"a.sh": "a", "a.py": "a", "a.b.ts": "a.b", ".js": ".js", "a.rb": "a.rb", "a": "a", "": "", "a.sh.py": "a.sh",
	} {
		if got := ToolStem(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	for alias, tool := range ToolAliases {
		all := strings.Join(append(BuiltinTools, SupervisorTools...), " ") + " "
		if !strings.Contains(all, alias+" ") || !strings.Contains(all, tool+" ") {
			t.Errorf("%s means %s, and one of them is no tool", alias, tool)
		}
	}
}
