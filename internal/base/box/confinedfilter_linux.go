package box

import (
	"os"

	"golang.org/x/sys/unix"
)

// attributeCalls change attributes of files that Landlock does not know: programs read that there are no such
// attributes.
var attributeCalls = []uintptr{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT,
}

// lastKnown is the number of the last system call that this filter was made for. Later ones do not exist for commands.
const lastKnown = unix.SYS_REMOVEXATTRAT

// processCalls change processes, whose number is an argument; 0 is the caller itself. Only itself may be changed: a
// number could mean a process outside.
var processCalls = []struct {
	number uintptr
	arg    uint32
}{
	{unix.SYS_PRLIMIT64, 0}, {unix.SYS_SCHED_SETAFFINITY, 0}, {unix.SYS_SCHED_SETSCHEDULER, 0}, {unix.SYS_SCHED_SETPARAM, 0}, {unix.SYS_SCHED_SETATTR, 0},
	{unix.SYS_SETPRIORITY, 0}, {unix.SYS_SETPRIORITY, 1}, {unix.SYS_IOPRIO_SET, 1},
}

// An ioctlGroup is the letter of a group of requests that change files, also those that are open for reading, and those
// of the group that are allowed.
type ioctlGroup struct {
	letter  uint32
	allowed []uint32
}

// ioctlGroups are the groups of the file systems. Cloning parts of a file needs permission to write; the others only
// tell.
var ioctlGroups = []ioctlGroup{
	{0x94, []uint32{unix.FICLONE, unix.FICLONERANGE}},
	{'f', []uint32{unix.FS_IOC_GETFLAGS, 0xc020660b}}, // FS_IOC_FIEMAP
	{'X', nil}, {0xf5, nil}, {'v', nil},
}

// buildConfinedFilter returns the instructions of the filter for commands without namespaces. What Landlock does not
// decide about, the modes and times of files, is decided by the listener.
func buildConfinedFilter(arch uint32) []unix.SockFilter {
	program := beginFilter(arch)
	program = append(program, unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JGT | unix.BPF_K, K: lastKnown, Jt: 0, Jf: 1}, failWith(unix.ENOSYS))
	program = refuseCalls(program, closed, unix.EACCES)
	program = refuseCalls(program, attributeCalls, unix.ENOTSUP)
	for _, c := range processCalls {
		program = append(program, jumpEqual(uint32(c.number), 0, 4), loadWord(dataArgs+8*c.arg), jumpEqual(0, 1, 0), failWith(unix.EPERM), loadWord(dataNumber))
	}
	for _, c := range chownCalls {
		program = append(program, refuseOthers(c)...)
	}
	for number := range attributeRequests {
		program = append(program, jumpEqual(uint32(number), 0, 1), endWith(unix.SECCOMP_RET_USER_NOTIF))
	}
	program = append(program, filterRequests()...)
	return append(program, endFilter()...)
}

// filterRequests returns the instructions that refuse requests about files, and what types into a terminal.
func filterRequests() []unix.SockFilter {
	inside := []unix.SockFilter{loadWord(dataArgs + 8), jumpEqual(unix.TIOCSTI, 1, 0), jumpEqual(unix.TIOCLINUX, 0, 1), failWith(unix.EPERM)}
	for _, g := range ioctlGroups {
		for _, request := range g.allowed {
			inside = append(inside, jumpEqual(request, 0, 1), allowCall())
		}
	}
	inside = append(inside, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_RSH | unix.BPF_K, K: 8}, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: 0xff})
	for _, g := range ioctlGroups {
		inside = append(inside, jumpEqual(g.letter, 0, 1), failWith(unix.ENOTTY))
	}
	inside = append(inside, allowCall())
	return append([]unix.SockFilter{jumpEqual(unix.SYS_IOCTL, 0, uint8(len(inside)))}, inside...)
}

// A chownCall is a system call that gives a file another owner: the position of the owner among its arguments. The
// group follows.
type chownCall struct {
	number uintptr
	owner  uint32
}

// refuseOthers returns instructions that refuse to give a file to another owner, and do nothing for a file that its
// owner is given again: that is what such calls are in the box of a user.
func refuseOthers(c chownCall) []unix.SockFilter {
	const unchanged = ^uint32(0)
	at := dataArgs + 8*c.owner
	return []unix.SockFilter{
		jumpEqual(uint32(c.number), 0, 8),
		loadWord(at), jumpEqual(unchanged, 1, 0), jumpEqual(uint32(os.Geteuid()), 0, 3),
		loadWord(at + 8), jumpEqual(unchanged, 2, 0), jumpEqual(uint32(os.Getegid()), 1, 0),
		failWith(unix.EPERM),
		endWith(unix.SECCOMP_RET_ERRNO),
	}
}
