package box

import (
	"bytes"
	"encoding/binary"
	"os"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// none is the position of an argument that a system call does not have.
const none = -1

// An attributeRequest says at which positions a system call that changes the mode or the times of a file has its
// arguments.
type attributeRequest struct {
	path, dir, file, mode, times, flags int
	form                                timeForm
}

// A timeForm is how a system call is given two times.
type timeForm int

// The forms of times, each with seconds of eight bytes.
const (
	nanoseconds  timeForm = iota // two pairs of seconds and nanoseconds
	microseconds                 // two pairs of seconds and microseconds
	wholeSeconds                 // two numbers of seconds
)

// A deputy changes modes and times of files for a command that must not do so itself, because Landlock does not decide
// about them. The change is made here, to a file that was opened and looked at before: what the command changes in its
// memory or in the file system meanwhile makes no difference.
type deputy struct {
	listener int
	writable []string // without links
}

// These are the forms of the listener of system calls, by the documentation of the kernel.
type (
	heldCall struct {
		id    uint64
		pid   uint32
		flags uint32
		data  struct {
			number uint32
			arch   uint32
			at     uint64
			args   [6]uint64
		}
	}
	callAnswer struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
)

// serveCalls answers system calls until no process of the box is left.
func (d *deputy) serveCalls() {
	for {
		poll := []unix.PollFd{{Fd: int32(d.listener), Events: unix.POLLIN}}
		if _, err := unix.Poll(poll, -1); err != nil && err != unix.EINTR {
			return
		}
		if poll[0].Revents&unix.POLLIN != 0 {
			d.answerCall()
		} else if poll[0].Revents&(unix.POLLHUP|unix.POLLERR|unix.POLLNVAL) != 0 {
			return
		}
	}
}

// answerCall receives one system call, makes it, and answers.
func (d *deputy) answerCall() {
	var n heldCall
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno != 0 {
		return // the process has ended meanwhile
	}
	r := callAnswer{id: n.id}
	if err := d.makeChange(n); err != nil {
		r.errno = -int32(err.(unix.Errno))
	}
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&r)))
}

// isAlive reports whether the process still waits for the answer, so that its number means it.
func (d *deputy) isAlive(id uint64) bool {
	const valid = 0x40082102 // SECCOMP_IOCTL_NOTIF_ID_VALID
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(d.listener), valid, uintptr(unsafe.Pointer(&id)))
	return errno == 0
}

// makeChange makes the change that a system call asks for. Errors are numbers of the system.
func (d *deputy) makeChange(n heldCall) error {
	request, ok := attributeRequests[uintptr(n.data.number)]
	if !ok {
		return unix.ENOSYS
	}
	process := "/proc/" + strconv.Itoa(int(n.pid))
	fd, err := openNamed(process, request, n)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	times, err := readTimes(int(n.pid), request, n)
	if err != nil {
		return err
	}
	if !d.isAlive(n.id) {
		return unix.ESRCH
	}
	if !d.mayChange(fd) {
		return unix.EACCES
	}
	if request.mode != none {
		const noOtherUsers = 0o1777 // no program of the workspace runs with the rights of its owner
		return asErrno(unix.Fchmodat(fd, "", uint32(n.data.args[request.mode])&noOtherUsers, unix.AT_EMPTY_PATH))
	}
	return asErrno(unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH))
}

// asErrno returns an error as the number of the system.
func asErrno(err error) error {
	if _, ok := err.(unix.Errno); err != nil && !ok {
		return unix.EIO
	}
	return err
}

// mayChange reports whether an open file lies where the command may write.
func (d *deputy) mayChange(fd int) bool {
	path, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
	return err == nil && slices.ContainsFunc(d.writable, func(dir string) bool { return isWithin(dir, path) })
}

// openNamed opens the file that a system call names, without permission to read or write it. Links to files of
// processes are not followed: they would mean those of this process.
func openNamed(process string, request attributeRequest, n heldCall) (int, error) {
	args := n.data.args
	if request.file != none {
		return openAs(process, int32(args[request.file]))
	}
	base := int32(unix.AT_FDCWD)
	flags := uint64(0)
	if request.dir != none {
		base = int32(args[request.dir])
	}
	if request.flags != none {
		flags = args[request.flags]
	}
	if args[request.path] == 0 {
		if request.times == none {
			return -1, unix.EFAULT
		}
		return openAs(process, base)
	}
	name, err := readName(int(n.pid), args[request.path])
	if err != nil {
		return -1, err
	}
	switch {
	case name == "" && flags&unix.AT_EMPTY_PATH != 0:
		return openAs(process, base)
	case name == "":
		return -1, unix.ENOENT
	}
	start := unix.AT_FDCWD
	if !strings.HasPrefix(name, "/") {
		if start, err = openAs(process, base); err != nil {
			return -1, err
		}
		defer unix.Close(start)
	}
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	fd, err := unix.Openat2(start, name, &how)
	return fd, asErrno(err)
}

// openAs opens what a process has under a number, or its current directory.
func openAs(process string, number int32) (int, error) {
	link := process + "/cwd"
	if number != unix.AT_FDCWD {
		link = process + "/fd/" + strconv.Itoa(int(number))
	}
	fd, err := unix.Open(link, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err == unix.ENOENT {
		err = unix.EBADF
	}
	return fd, asErrno(err)
}

// readMemory returns bytes of the memory of a process, fewer if not all can be read.
func readMemory(pid int, at uint64, size int) []byte {
	data := make([]byte, size)
	got, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &data[0], Len: uint64(size)}}, []unix.RemoteIovec{{Base: uintptr(at), Len: size}}, 0)
	if err != nil {
		return nil
	}
	return data[:got]
}

// readName returns a path from the memory of a process. It is read page by page, because the page after its end need
// not exist.
func readName(pid int, at uint64) (string, error) {
	const page = 4096
	var name []byte
	for len(name) < unix.PathMax {
		part := readMemory(pid, at, page-int(at%page))
		if len(part) == 0 {
			return "", unix.EFAULT
		}
		if end := bytes.IndexByte(part, 0); end >= 0 {
			return string(append(name, part[:end]...)), nil
		}
		name = append(name, part...)
		at += uint64(len(part))
	}
	return "", unix.ENAMETOOLONG
}

// readTimes returns the times of access and of change that a system call gives. Without any they are now.
func readTimes(pid int, request attributeRequest, n heldCall) ([]unix.Timespec, error) {
	now := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
	if request.times == none || n.data.args[request.times] == 0 {
		return now, nil
	}
	size := 32
	if request.form == wholeSeconds {
		size = 16
	}
	data := readMemory(pid, n.data.args[request.times], size)
	if len(data) != size {
		return nil, unix.EFAULT
	}
	number := func(i int) int64 { return int64(binary.NativeEndian.Uint64(data[8*i:])) }
	switch request.form {
	case wholeSeconds:
		return []unix.Timespec{{Sec: number(0)}, {Sec: number(1)}}, nil
	case microseconds:
		return []unix.Timespec{{Sec: number(0), Nsec: number(1) * 1000}, {Sec: number(2), Nsec: number(3) * 1000}}, nil
	}
	return []unix.Timespec{{Sec: number(0), Nsec: number(1)}, {Sec: number(2), Nsec: number(3)}}, nil
}
