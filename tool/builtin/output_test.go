//go:build unix

package builtin_test

import (
	"strings"
	"sync"
	"testing"

	"raddle.dev/tool"
)

// What a command prints is shown before it ends, also on stderr.
func TestCommandShowsItsOutput(t *testing.T) {
	h := place(t, nil)
	var mu sync.Mutex
	var shown strings.Builder
	seen, once := make(chan struct{}), sync.Once{}
	call := tool.Call{Args: raw(t, object{"command": "echo first; echo second >&2; read -r line < fifo; echo $line"}), Output: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		shown.WriteString(text)
		if strings.Contains(shown.String(), "first") && strings.Contains(shown.String(), "second") {
			once.Do(func() { close(seen) })
		}
	}}
	if got := use(t, h, "execute_command", object{"command": "mkfifo fifo"}); got != `"DONE"` {
		t.Fatal(got)
	}
	go func() {
		<-seen // otherwise the command never ends, and the test neither
		use(t, h, "execute_command", object{"command": "echo third > fifo"})
	}()
	r, err := lookup(t, h, "execute_command").Run(t.Context(), call)
	if err != nil || !strings.Contains(r.Text(), "third") {
		t.Fatal(r, err)
	}
}
