package box

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"raddle.dev/internal/base/proc"
)

// processorTime returns the time that this process and its children that have ended have used.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var total time.Duration
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var usage unix.Rusage
		if err := unix.Getrusage(who, &usage); err != nil {
			b.Fatal(err)
		}
		total += time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
	}
	return total
}

// BenchmarkCommand runs the smallest command with and without a box, and reports the processor time of one, in this process and in what it starts. The
// program that starts itself is the one of the test, which is smaller than raddle.
func BenchmarkCommand(b *testing.B) {
	base := b.TempDir()
	spec := Spec{Workspace: filepath.Join(base, "work"), Private: filepath.Join(base, "private"), Aside: filepath.Join(base, "aside"), Layers: []string{"/tmp"}, Protected: func(string, string) string { return "" }}
	spec.Hidden = func() []string { return []string{"/etc/shadow", "/etc/ssl/private", filepath.Join(base, "key")} }
	for _, name := range []string{spec.Workspace, spec.Private} {
		if err := os.Mkdir(name, 0o755); err != nil {
			b.Fatal(err)
		}
	}
	command := proc.Command{Path: "/bin/true", Dir: spec.Workspace, Env: []string{"PATH=" + os.Getenv("PATH")}}
	measure := func(name string, run func() error) {
		b.Run(name, func(b *testing.B) {
			began := processorTime(b)
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64((processorTime(b)-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
	measure("plain", func() error {
		_, err := proc.Run(b.Context(), command)
		return err
	})
	for name, w := range map[string]way{"layered": &layered{}, "confined": &confined{}} {
		box, err := newBox(spec, []way{w})
		if err != nil {
			b.Log(err)
			continue
		}
		measure(name, func() error {
			_, _, err := box.Run(b.Context(), command, nil)
			return err
		})
	}
}
