//go:build linux && !amd64 && !arm64

package box

// closed, chownCalls and attributeRequests are empty: without a filter of system calls there is no box.
var (
	closed            []uintptr
	chownCalls        []chownCall
	attributeRequests map[uintptr]attributeRequest
)
