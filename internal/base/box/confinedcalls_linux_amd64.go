package box

import "golang.org/x/sys/unix"

// chownCalls are the system calls that give a file another owner.
var chownCalls = []chownCall{{unix.SYS_CHOWN, 1}, {unix.SYS_LCHOWN, 1}, {unix.SYS_FCHOWN, 1}, {unix.SYS_FCHOWNAT, 2}}

// attributeRequests are the system calls that change modes and times of files, and how their arguments are read.
var attributeRequests = map[uintptr]attributeRequest{
	unix.SYS_CHMOD:     {path: 0, dir: none, file: none, mode: 1, times: none, flags: none},
	unix.SYS_FCHMOD:    {path: none, dir: none, file: 0, mode: 1, times: none, flags: none},
	unix.SYS_FCHMODAT:  {path: 1, dir: 0, file: none, mode: 2, times: none, flags: none},
	unix.SYS_FCHMODAT2: {path: 1, dir: 0, file: none, mode: 2, times: none, flags: 3},
	unix.SYS_UTIME:     {path: 0, dir: none, file: none, mode: none, times: 1, form: wholeSeconds, flags: none},
	unix.SYS_UTIMES:    {path: 0, dir: none, file: none, mode: none, times: 1, form: microseconds, flags: none},
	unix.SYS_FUTIMESAT: {path: 1, dir: 0, file: none, mode: none, times: 2, form: microseconds, flags: none},
	unix.SYS_UTIMENSAT: {path: 1, dir: 0, file: none, mode: none, times: 2, form: nanoseconds, flags: 3},
}
