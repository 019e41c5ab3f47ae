//go:build linux

package flow

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// What a script starts ends with it, also where it has left the script's group,
// and after the script's own timeout.
func TestChildrenOfScriptsEnd(t *testing.T) {
	for name, then := range map[string]string{"script ends": "echo '{}'", "script times out": "sleep 1000"} {
		t.Run(name, func(t *testing.T) {
			fifo := filepath.Join(t.TempDir(), "fifo")
			if err := unix.Mkfifo(fifo, 0o600); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1) // the last process that holds the fifo has ended
			go func() {
				f, err := os.Open(fifo)
				if err == nil {
					_, err = io.ReadAll(f)
				}
				ended <- err
			}()
			r := newResumable(t, map[string]string{
				"graph.yaml": "name: g\nstart: s\nnodes:\n  s: {type: script, script: s.sh, timeout: 1, fallback: e, next: e}\n  e: {type: end}\n",
				"s.sh":       "exec 9>" + fifo + "\nsetsid sleep 1000 >/dev/null 2>&1 </dev/null &\n" + then + "\n",
			})
			if _, err := r.drive(); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Fatal(err)
			}
		})
	}
}
