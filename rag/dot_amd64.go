//go:build !purego

package rag

import "golang.org/x/sys/cpu"

// fast tells whether the processor multiplies and adds sixteen codes at a time.
var fast = cpu.X86.HasAVX2

// dotAVX is the inner product of n codes, a multiple of lanes above zero.
//
//go:noescape
func dotAVX(a *int16, b *int8, n int) int32

// dotCodes is the inner product of codes of one length, a multiple of lanes above zero.
func dotCodes(a []int16, b []int8) int32 {
	if !fast {
		return dotPlain(a, b)
	}
	b = b[:len(a)]
	return dotAVX(&a[0], &b[0], len(a))
}
