package box

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// landlockVersion returns the version of Landlock that the kernel offers; 0: none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// A landlockRules is the number of an open list of what Landlock allows.
type landlockRules int

// newRules returns a list that allows nothing of what handles names.
func newRules(handles unix.LandlockRulesetAttr) (landlockRules, error) {
	size := unsafe.Sizeof(handles)
	if handles.Access_net == 0 && handles.Scoped == 0 {
		size = unsafe.Sizeof(handles.Access_fs) // what older kernels know
	}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&handles)), size, 0)
	if errno != 0 {
		return -1, fmt.Errorf("make a list of rules: %w", errno)
	}
	return landlockRules(fd), nil
}

// allowPath allows access to a file, or to everything below a directory. The path must exist.
func (r landlockRules) allowPath(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer unix.Close(fd)
	if err := r.allowFile(fd, access); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// allowFile allows access to an open file, or to everything below an open directory.
func (r landlockRules) allowFile(fd int, access uint64) error {
	beneath := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(r), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&beneath)), 0, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// restrictThread restricts this thread, and what it starts, to what the list allows.
func (r landlockRules) restrictThread() error {
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(r), 0, 0); errno != 0 {
		return fmt.Errorf("restrict what the command may do: %w", errno)
	}
	return nil
}

// closeRules frees the list.
func (r landlockRules) closeRules() { _ = unix.Close(int(r)) }
