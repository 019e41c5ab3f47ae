//go:build linux && !amd64 && !arm64

package box

// closed, chownCalls and attributeRequests are empty where there is no filter of system calls, and therefore no box.
var (
	closed            []uintptr
	chownCalls        []chownCall
	attributeRequests map[uintptr]attributeRequest
)
