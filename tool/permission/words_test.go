package permission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/tool/permission"
)

// The first words of a command can be allowed where that is known to make sense, and never what runs any command, may do harm, or is protected.
func TestWords(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	for command, want := range map[string]string{
		"git push origin main":               "git push …",
		"git push":                           "git push …",
		"go test ./... -run X":               "go test …",
		"pytest -q tests":                    "pytest …",
		"git add -A && git push origin main": "git add … git push …",
		"git push && frobnicate now":         "git push …",
		"frobnicate now":                     "",
		"git -C sub push":                    "",
		"git push --force":                   "",
		"git $SUB origin":                    "",
		"GIT_DIR=x git push":                 "",
		"docker run -v /:/x alpine":          "",
		"npx cowsay":                         "",
		"npm exec x":                         "",
		"bash run.sh":                        "",
		"sudo git push":                      "git push …", // together with a rule about sudo git push
		"xargs git push":                     "",
		"./git push":                         "",
		"git push; rm -rf build":             "",
		"git add .git/hooks/pre-commit":      "",
	} {
		d := decideCommand(t, r.policy, command)
		var got []string
		for _, rule := range d.Words {
			if text := permission.DescribeWords(rule); text != "" {
				got = append(got, text)
			}
		}
		if d.Verdict != permission.Ask || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %q, want %q", command, d.Verdict, d.Words, want)
		}
	}
}

// What was allowed by its first words allows others that begin so, and nothing else: no harm, no protected place, no other content.
func TestWordsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRoom(t)
	if err := os.WriteFile(filepath.Join(r.dir, "Makefile"), []byte("all:\n\techo one\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p := r.policy
	for _, command := range []string{"git push origin main", "make all"} {
		for _, text := range decideCommand(t, p, command).Words {
			rule, err := permission.ParseRule(text)
			if err != nil {
				t.Fatal(err)
			}
			p.Granted = append(p.Granted, rule)
		}
	}
	for command, want := range map[string]permission.Verdict{
		"git push": permission.Allow, "git push origin dev": permission.Allow, "make": permission.Allow, "make -j4 test": permission.Allow, "git push && make": permission.Allow,
		"git push --force": permission.Ask, "git push origin +main": permission.Ask, "git pull": permission.Ask, "git -c x=y push": permission.Ask, "git push; rm -rf x": permission.Ask,
		"git push $(rm x)": permission.Ask, "make > /etc/x": permission.Ask, "make -f ../Makefile .git/config": permission.Ask, "A=b git push": permission.Ask,
	} {
		if d := decideCommand(t, p, command); d.Verdict != want {
			t.Errorf("%s: %v: %v", command, d.Verdict, d.Reasons)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "Makefile"), []byte("all:\n\techo two\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if d := decideCommand(t, p, "make"); d.Verdict != permission.Ask || !strings.Contains(strings.Join(d.Reasons, " "), "has changed since it was allowed") {
		t.Errorf("with another Makefile: %v: %v", d.Verdict, d.Reasons)
	}
}
