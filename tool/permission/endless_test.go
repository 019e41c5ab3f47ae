package permission

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"raddle.dev/tool"
)

// endless are the ways in which each command that runs without asking may work without an end, or until the memory is full; none: it ends with what it reads.
var endless = map[string][]string{
	":": {"while :; do :; done", "until ! :; do ls; done"}, "true": {"while true; do ls; done", "while true | true; do ls; done", "while ls; true; do ls; done", "while { true; }; do ls; done", "while (true); do ls; done", "while true && true; do ls; done"},
	"false": {"until false; do ls; done", "while ! false; do ls; done"},
	"echo":  {"while echo; do ls; done", "echo {1..99999999}", "echo {1..300}{1..300}", "for i in {1..99999999}; do ls; done", "x={1..99999999}; echo a{1..99999999}"},
	"pwd":   {"while pwd; do ls; done"}, "basename": {"while basename x; do ls; done"}, "dirname": {"while dirname x; do ls; done"},
	"seq": {"seq 1 99999999999", "seq 99999999999", "seq inf", "seq 1 inf", "seq 1 0 5", "seq 0 .0000001 5", "seq 1e12", "seq -- 1 99999999999", "seq -w 99999999999", "seq -s , 99999999999", "seq -f %.9999999f 1", "seq --format=%9999999g 1",
		"seq 5 -1 -99999999999", "n=99999999999; seq $n", "n=99999999999; seq 1 \"$n\"", "for n in 1 99999999999; do seq $n; done", "seq -99999999999 1", "seq nan", "while seq 1; do ls; done", "seq 1 99999999999 | head -n 1", "bash -c 'seq 99999999999'"},
	"sleep": {"sleep 301", "sleep infinity", "sleep 1d", "sleep 200 200", "sleep 200; sleep 200", "n=1000; sleep $n", "for i in 1 2 3 4; do sleep 100; done", "for i in $(seq 1000); do sleep 1; done", "for i in {1..1000}; do sleep 1; done", "while sleep 1; do date; done",
		"for i in 1 2; do for j in 1 2; do sleep 100; done; done", "find . -exec sleep 1 ';'", "bash -c 'sleep 200'; sleep 200", "sleep 200 & sleep 200"},
	"printf": {"while printf x; do ls; done", "printf %999999999d 1", "printf '%-999999999s' x", "printf %.999999999d 1", "printf '%*d' 999999999 1", "printf '%.*f' 999999999 1", "n=999999999; printf '%*d' $n 1"},
	"test":   {"while test 1; do ls; done", "while test 1 = 1; do ls; done", "until test 1 = 2; do ls; done", "while test -n x; do ls; done"},
	"[":      {"while [ 1 ]; do ls; done", "while [ 1 -eq 1 ]; do ls; done", "while ! [ -z x ]; do ls; done", "while [[ 1 ]]; do ls; done", "while [[ 1 == 1 ]]; do ls; done", "while [[ -n 'x y' ]]; do ls; done", "while ((1)); do ls; done", "for ((;;)); do ls; done"},
	"date":   {"while date; do ls; done"}, "whoami": {"while whoami; do ls; done"}, "id": {"while id; do ls; done"}, "uname": {"while uname; do ls; done"}, "arch": {"while arch; do ls; done"}, "nproc": {"while nproc; do ls; done"},
	"tail": {"tail -f a.txt", "tail -F a.txt", "tail --follow a.txt", "tail --retry a.txt", "tail -fn1 a.txt"},
	"cat":  {"cat /dev/zero", "cat /dev/urandom | head"}, "head": {"head -c 1G /dev/zero"}, "tr": {"tr a b </dev/zero"}, "cksum": {"cksum /dev/zero"}, "od": {"od /dev/zero"},
	"jq": {"jq -n 'def f: f; f'", "jq -n 'repeat(1)'", "jq -n '[range(1e12)]'", "jq -n '[range(0; 99999999999)]'", "jq -n 'range(infinite)'", "jq -n '1 | while(true; .)'", "jq -n '1 | until(false; .)'", "jq -n '1 | recurse(. + 1)'", "jq -n '\"x\" * 9999999999'",
		"jq -n '[limit(99999999999; range(infinite))]'", "jq -n '[ 1|repeat(.) ]'", "jq '.a|def g(x): g(x); g(1)' a.json"},

	"exit": nil, "return": nil, "break": nil, "continue": nil, "shift": nil, "which": nil, "type": nil, "wait": nil, "set": nil, "read": nil, "ls": nil, "nl": nil, "tac": nil, "rev": nil, "cut": nil, "paste": nil, "column": nil,
	"wc": nil, "fold": nil, "expand": nil, "unexpand": nil, "comm": nil, "cmp": nil, "stat": nil, "diff": nil, "du": nil, "df": nil, "file": nil, "tree": nil, "realpath": nil, "readlink": nil, "md5sum": nil, "sha1sum": nil, "sha256sum": nil,
	"sha512sum": nil, "hexdump": nil, "xxd": nil, "uniq": nil, "sort": nil, "grep": nil, "egrep": nil, "fgrep": nil, "rg": nil, "sed": nil, "git": nil, "find": nil,
}

// Commands that only read ask if they may work without an end; with other arguments they still run.
func TestEndlessCommandsAsk(t *testing.T) {
	if names := slices.Sorted(maps.Keys(readers)); !slices.Equal(names, slices.Sorted(maps.Keys(endless))) {
		t.Errorf("endless must say of each command how it may work without an end: %q", names)
	}
	p := Policy{Workspace: t.TempDir()}
	decide := func(text string) Decision {
		args, err := json.Marshal(map[string]string{"command": text})
		if err != nil {
			t.Fatal(err)
		}
		shell := tool.Tool{Name: "execute_command", Touches: func(json.RawMessage) (tool.Touch, error) { return tool.Touch{Commands: []string{text}}, nil }}
		d, err := p.Decide(t.Context(), shell, tool.Call{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for _, texts := range endless {
		for _, text := range texts {
			if d := decide(text); d.Verdict != Ask {
				t.Errorf("%s: %v", text, d.Verdict)
			}
		}
	}
	for _, text := range []string{"seq 10", "seq 1 2 100000", "seq -w 1 100", "seq -s, 5", "seq -f %03g 10", "seq 10 -1 1", "seq 10 1", "seq -5 5", "seq 1 $(nproc)", "n=5; seq $n", "for i in $(seq 1 20); do echo $i; done", "seq 0 .1 1", "seq 1 10000000",
		"sleep 5m", "sleep 1 2 3", "sleep 100; sleep 100; sleep 100", "for i in 1 2 3; do sleep 100; done", "for i in $(seq 5); do sleep 10; done", "until [ -f x ]; do sleep 1; done", "while [ ! -e x ]; do sleep 1; done",
		"while read -r line; do echo $line; done <a.txt", "while true; do ls; break; done", "while [[ -f x ]]; do ls; done", "while false; do ls; done", "while grep -q x a.txt; do sleep 1; done", "while test a.txt -nt b.txt; do ls; done",
		"printf '%s\\n' a b", "printf %80s x", "printf '%*s' 80 x", "printf '%d items, 99999999999\\n' 99999999999", "printf '%-20s|%5.2f' x 1", "echo {1..100}", "echo {a,b}{c,d}", "for i in {1..50}; do ls; done", "echo '{1..99999999}'",
		"jq . a.json", "jq '.items[] | select(.n > 10000000000) | .name' a.json", "jq -r '.. | .id? // empty' a.json", "jq 'recurse | .x?' a.json", "jq '[range(0;10)]' a.json", "jq '.default, .definition, .until, .repeat' a.json", "jq '.a * 2' a.json",
		"jq 'to_entries | map(\"\\(.key)=\\(.value)\")' a.json", "jq '.[\"while\"]' a.json", "date; whoami; id"} {
		if d := decide(text); d.Verdict != Allow {
			t.Errorf("%s asks: %q", text, d.Reasons)
		}
	}
}
