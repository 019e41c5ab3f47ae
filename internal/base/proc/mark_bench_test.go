//go:build unix

package proc

import (
	"testing"
	"time"
)

// BenchmarkEndMarked measures the search for processes with a mark that none has: every command
// with a mark pays that when it ends.
func BenchmarkEndMarked(b *testing.B) {
	const mark = "RADDLE_TEST_MARK=none"
	b.Run("all", func(b *testing.B) {
		for b.Loop() {
			endMarked(mark)
		}
	})
	b.Run("newer", func(b *testing.B) {
		c := bash("true")
		ch, err := startChild(c)
		if err != nil {
			b.Fatal(err)
		}
		ch.waitExit()
		pid := ch.cmd.Process.Pid
		if _, err := ch.reapAndReport(c, nil); err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			endMarkedSince(mark, pid, time.Millisecond)
		}
	})
}
