package proc

import "testing"

func TestSuspendWithTerminal(t *testing.T) {
	for name, stop := range map[string]struct{ script, keys string }{
		"Ctrl-Z": {`read -r -p "name? " x; echo "hello $x" >&2`, "\x1a"},
		"signal": {`kill -STOP $$; read -r -p "name? " x; echo "hello $x" >&2`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := openScene(t, stop.script)
			if stop.keys != "" {
				s.await("name? ")
				s.press(stop.keys)
			}
			s.await("suspended, foreground true")
			s.press("go on\n")
			s.await("name? ")
			s.press("Ada\n")
			s.await("hello Ada")
			s.await("ended: <nil>, foreground true")
			s.press("more\n")
			s.await(`the parent read "more"`)
		})
	}
}
