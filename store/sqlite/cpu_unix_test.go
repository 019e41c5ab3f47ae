//go:build unix

package sqlite_test

import (
	"syscall"
	"testing"
)

// cpuTime reports the processor time per operation between its call and that of
// the function it returns: on a busy machine the time on the clock says little.
func cpuTime(b *testing.B) (stop func()) {
	b.ReportAllocs()
	used := func() int64 {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			b.Fatal(err)
		}
		return u.Utime.Nano() + u.Stime.Nano()
	}
	start := used()
	return func() { b.ReportMetric(float64(used()-start)/float64(b.N), "cpu-ns/op") }
}
