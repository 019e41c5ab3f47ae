//go:build !purego

package rag

import "golang.org/x/sys/cpu"

// fast tells whether the processor multiplies and adds eight numbers at a time.
var fast = cpu.X86.HasAVX2 && cpu.X86.HasFMA

// dotAVX is the inner product of n numbers, a multiple of 32 above zero.
//
//go:noescape
func dotAVX(a, b *float32, n int) float32

// dot is the inner product of two vectors of one length.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	n := len(a) &^ 31
	if n == 0 || !fast {
		return dotPlain(a, b)
	}
	return dotAVX(&a[0], &b[0], n) + dotPlain(a[n:], b[n:])
}
