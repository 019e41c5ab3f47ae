package proc

import (
	"os"
	"os/exec"
	"runtime"
	"sync"
	"testing"
)

// TestChildDiesWithItsParent kills a process that runs a child with SIGKILL, which the process cannot handle.
func TestChildDiesWithItsParent(t *testing.T) {
	for name, talks := range map[string]string{"run": "", "talked to": "yes"} {
		t.Run(name, func(t *testing.T) {
			w := newWire(t)
			parent := exec.Command(os.Args[0])
			parent.Env = append(os.Environ(), parentTalks+"="+talks, parentScript+"="+w.script("trap '' TERM; say ready; forever"))
			parent.Stderr = os.Stderr
			if err := parent.Start(); err != nil {
				t.Fatal(err)
			}
			w.expect("ready")
			if err := parent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			w.expectEnd()
			parent.Wait()
		})
	}
}

// TestChildOutlivesOtherThreads ends as many threads of this process as it can, also while Run waits for something that is not the
// child. The kernel kills a child with the thread that started it, so the child lives on only if that thread was locked.
func TestChildOutlivesOtherThreads(t *testing.T) {
	w := newWire(t)
	c := bash(w.script("say ready; pause; say alive"))
	c.Started = func(Handle) error {
		w.expect("ready")
		endThreads()
		return nil
	}
	done := begin(t.Context(), c)
	endThreads()
	w.open()
	w.expect("alive")
	if got := <-done; got.err != nil {
		t.Errorf("%+v, want an ordinary end", got)
	}
}

// endThreads starts goroutines that lock a thread each until all have one, and then end with their threads.
func endThreads() {
	for range 10 {
		var threads, met sync.WaitGroup
		const many = 20
		met.Add(many)
		for range many {
			threads.Go(func() {
				runtime.LockOSThread() // without unlocking: the thread ends with the goroutine
				met.Done()
				met.Wait()
			})
		}
		threads.Wait()
	}
}

// TestRunDoesNotWaitForAProcessThatLeft has a process leave the group with the output open: it lives on, and Run returns.
func TestRunDoesNotWaitForAProcessThatLeft(t *testing.T) {
	w := newWire(t)
	c := bash(w.script(`mkfifo "$gate.stay"
		setsid bash -c 'echo >"$0"; echo ready >&9; read -r _ <"$0.stay"; echo left >&9' "$gate" &
		pause # until it has left
		echo done`))
	c.Grace = brief
	got, err := Run(t.Context(), c)
	if err != nil || string(got.Stdout) != "done\n" {
		t.Errorf("%+v, %v, want an ordinary end", got, err)
	}
	w.expect("ready")
	stay, err := os.OpenFile(w.path+".gate.stay", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	stay.Close()
	w.expect("left")
	w.expectEnd()
}
