package term

import (
	"strings"
	"testing"
)

func TestColorful(t *testing.T) {
	tests := []struct {
		flag     string
		terminal bool
		env      string
		want     bool
	}{
		{"auto", true, "TERM=xterm", true},
		{"auto", false, "TERM=xterm", false},
		{"auto", true, "TERM=dumb", false},
		{"auto", true, "NO_COLOR=1", false},
		{"auto", false, "CLICOLOR_FORCE=1", true},
		{"auto", false, "CLICOLOR_FORCE=0", false},
		{"auto", false, "FORCE_COLOR=3", true},
		{"auto", false, "FORCE_COLOR=false", false},
		{"auto", false, "FORCE_COLOR=1 NO_COLOR=1", false},
		{"always", false, "NO_COLOR=1", true},
		{"never", true, "FORCE_COLOR=1", false},
	}
	for _, test := range tests {
		env := map[string]string{}
		for _, kv := range strings.Fields(test.env) {
			name, value, _ := strings.Cut(kv, "=")
			env[name] = value
		}
		if got := WantsColors(test.flag, test.terminal, func(name string) string { return env[name] }); bool(got) != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
