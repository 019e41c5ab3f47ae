//go:build amd64 || arm64

package box

import "golang.org/x/sys/unix"

// closed are the system calls that commands without namespaces do not have in addition: sockets, and objects of the
// kernel that are not files and are shared with processes outside.
var closed = []uintptr{
	unix.SYS_SOCKET, unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK, unix.SYS_MOVE_PAGES, unix.SYS_MIGRATE_PAGES,
}
