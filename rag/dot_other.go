//go:build !amd64 || purego

package rag

// dotCodes returns the inner product of codes of the same length, which must be a multiple of lanes above zero.
func dotCodes(a []int16, b []int8) int32 { return dotPlain(a, b) }
