//go:build !amd64 || purego

package rag

// dotCodes is the inner product of codes of one length, a multiple of lanes above zero.
func dotCodes(a []int16, b []int8) int32 { return dotPlain(a, b) }
