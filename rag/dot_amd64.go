//go:build !purego

package rag

import "golang.org/x/sys/cpu"

// fast reports whether the processor can multiply and add sixteen codes at a time.
var fast = cpu.X86.HasAVX2

// dotAVX returns the inner product of n codes. n must be a multiple of lanes above zero.
//
//go:noescape
func dotAVX(a *int16, b *int8, n int) int32

// dotCodes returns the inner product of codes of the same length, which must be a multiple of lanes above zero.
func dotCodes(a []int16, b []int8) int32 {
	if !fast {
		return dotPlain(a, b)
	}
	b = b[:len(a)]
	return dotAVX(&a[0], &b[0], len(a))
}
