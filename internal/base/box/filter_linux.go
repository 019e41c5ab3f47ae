package box

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// architectures are the names that the kernel uses in the data of a filter.
var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// refused are the system calls that end with "operation not permitted": those that look into other processes, make
// namespaces and mounts, use keys of the kernel, or are large and seldom needed.
var refused = []uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_PROCESS_MADVISE,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSCONFIG,
	unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS, unix.SYS_UNSHARE, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SWAPON, unix.SYS_SWAPOFF,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_NAME_TO_HANDLE_AT, unix.SYS_FANOTIFY_INIT,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_SYSLOG, unix.SYS_ACCT,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_ADJTIMEX, unix.SYS_CLOCK_ADJTIME, unix.SYS_SETDOMAINNAME, unix.SYS_SETHOSTNAME, unix.SYS_VHANGUP,
}

// missing are the system calls that end with "function not implemented", so that programs use the older ones: the
// arguments of clone3 cannot be looked at, and io_uring makes calls that no filter sees.
var missing = []uintptr{unix.SYS_CLONE3, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}

// families are the kinds of sockets that a command may open. Those of the network namespace reach only the command's
// own servers; sockets that are files (AF_UNIX) would reach servers outside, such as agents for keys.
var families = []uint32{unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK}

// namespaces are the flags of clone that make namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWTIME

// kindOfSocket are the bits of a kind of socket, without its flags.
const kindOfSocket = 0xf

// Positions in the data of a filter.
const (
	dataNumber = 0
	dataArch   = 4
	dataArgs   = 16
)

// installFilter installs a filter of system calls for this thread and what it starts. With the flag that asks for a
// listener it returns the listener's number.
func installFilter(build func(arch uint32) []unix.SockFilter, flags uintptr) (int, error) {
	arch, ok := architectures[runtime.GOARCH]
	if !ok {
		return -1, errors.New("there is no filter of system calls for " + runtime.GOARCH)
	}
	program := build(arch)
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog)))
	if errno != 0 {
		return -1, fmt.Errorf("filter system calls: %w", errno)
	}
	return int(fd), nil
}

// loadWord is the instruction that loads a word of the data of a filter.
func loadWord(at uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
}

// jumpEqual is the instruction that skips yes instructions if the loaded word is k, and no instructions otherwise.
func jumpEqual(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// jumpBits is the instruction that skips yes instructions if the loaded word has a bit of k, and no instructions
// otherwise.
func jumpBits(k uint32, yes, no uint8) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, K: k, Jt: yes, Jf: no}
}

// endWith is the instruction that ends the filter with an answer.
func endWith(answer uint32) unix.SockFilter {
	return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: answer}
}

// failWith is the instruction that ends the system call with an error.
func failWith(e unix.Errno) unix.SockFilter { return endWith(unix.SECCOMP_RET_ERRNO | uint32(e)) }

// allowCall is the instruction that lets the system call pass.
func allowCall() unix.SockFilter { return endWith(unix.SECCOMP_RET_ALLOW) }

// beginFilter returns the instructions that every filter begins with: they refuse other architectures and what no box
// allows, and leave the number of the system call loaded.
func beginFilter(arch uint32) []unix.SockFilter {
	program := []unix.SockFilter{
		loadWord(dataArch), jumpEqual(arch, 1, 0), failWith(unix.EPERM),
		loadWord(dataNumber),
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		program = append(program, jumpBits(0x40000000, 0, 1), failWith(unix.EPERM)) // the numbers of x32
	}
	program = refuseCalls(program, refused, unix.EPERM)
	program = refuseCalls(program, missing, unix.ENOSYS)
	// clone: no new namespaces.
	return append(program, jumpEqual(unix.SYS_CLONE, 0, 4), loadWord(dataArgs), jumpBits(namespaces, 0, 1), failWith(unix.EPERM), allowCall())
}

// refuseCalls adds instructions that end system calls with an error.
func refuseCalls(program []unix.SockFilter, calls []uintptr, e unix.Errno) []unix.SockFilter {
	for _, number := range calls {
		program = append(program, jumpEqual(uint32(number), 0, 1), failWith(e))
	}
	return program
}

// endFilter returns the instructions that every filter ends with. socketpair makes only kinds that stay connected to
// each other: a socket for datagrams sends also to sockets outside that are files.
func endFilter() []unix.SockFilter {
	return []unix.SockFilter{
		jumpEqual(unix.SYS_SOCKETPAIR, 0, 8),
		loadWord(dataArgs), jumpEqual(unix.AF_UNIX, 0, 5),
		loadWord(dataArgs + 8), {Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: kindOfSocket},
		jumpEqual(unix.SOCK_STREAM, 1, 0), jumpEqual(unix.SOCK_SEQPACKET, 0, 1), allowCall(),
		failWith(unix.EACCES),
		allowCall(),
	}
}

// buildFilter returns the instructions of the filter for commands in namespaces of their own.
func buildFilter(arch uint32) []unix.SockFilter {
	program := beginFilter(arch)
	// ioctl: nothing is typed into a terminal.
	program = append(program, jumpEqual(unix.SYS_IOCTL, 0, 5), loadWord(dataArgs+8), jumpEqual(unix.TIOCSTI, 1, 0), jumpEqual(unix.TIOCLINUX, 0, 1), failWith(unix.EPERM), allowCall())
	// socket: only families that stay in the network namespace.
	program = append(program, jumpEqual(unix.SYS_SOCKET, 0, uint8(len(families)+3)), loadWord(dataArgs))
	for i, family := range families {
		program = append(program, jumpEqual(family, uint8(len(families)-i), 0))
	}
	program = append(program, failWith(unix.EACCES), allowCall())
	return append(program, endFilter()...)
}
