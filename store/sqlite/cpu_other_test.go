//go:build !unix

package sqlite_test

import "testing"

// cpuTime has no processor time to report here.
func cpuTime(b *testing.B) (stop func()) {
	b.ReportAllocs()
	return func() {}
}
