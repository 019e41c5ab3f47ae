package helptext

import "testing"

// The lines of a paragraph are joined if one does not fit; those of lists and tables never are.
func TestJoinLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"one two three\nfour five", "one two three four five"},
		{"one two\nthree", "one two\nthree"},
		{"name   a description of it\nother  another", "name   a description of it\nother  another"},
		{"- one two three four\n- five", "- one two three four\n- five"},
		{"for example:\n  raddle run agent", "for example:\n  raddle run agent"},
	} {
		if got := joinLines(c.text, 12); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
		if got := joinLines(c.text, 0); got != c.text {
			t.Errorf("off a terminal: %q", got)
		}
	}
}
