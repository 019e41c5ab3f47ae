package permission_test

import (
	"testing"

	"raddle.dev/tool/permission"
)

// A text is unasked if a command of it runs that neither a rule nor an answer allows, and none that needs one of them.
func TestWhichCallsAreUnasked(t *testing.T) {
	p, _ := newProtectedRoom(t)
	for _, c := range []struct {
		text, allow, granted string
		want                 bool
	}{
		{"ls", "", "", true},
		{"cd src && ls | head", "", "", true},
		{"bash -c 'ls'", "", "", true},
		{"ls", "execute_command", "", false},
		{"ls", "", "execute_command(ls)", false},
		{"ls; pwd", "execute_command(ls)", "", true},
		{"ls; pwd", "execute_command(ls)", "execute_command(pwd)", false},
		{"make", "execute_command(make)", "", false},
		{"make; ls", "execute_command(make)", "", false},
		{"ls; make", "", "execute_command(make)", false},
		{"ls $(make)", "execute_command(make)", "", false},
		{"make", "", "", false}, // it asks
		{"ls (", "", "", false}, // it cannot be understood, and asks
	} {
		q := p
		if c.allow != "" {
			q.Rules = []permission.Rules{rules(t, "allow: [\""+c.allow+"\"]")}
		}
		if c.granted != "" {
			r, err := permission.ParseRule(c.granted)
			if err != nil {
				t.Fatal(err)
			}
			q.Granted = []permission.Rule{r}
		}
		if d := decide(t, q, shellTool, args(t, "command", c.text)); d.Unasked != c.want {
			t.Errorf("%s with %q and %q: unasked %v, want %v (%q)", c.text, c.allow, c.granted, d.Unasked, c.want, d.Reasons)
		}
	}
	if d := decide(t, p, fileTool("fs_cat", false), args(t, "path", "in.txt")); d.Unasked {
		t.Error("a call without commands is unasked")
	}
}
