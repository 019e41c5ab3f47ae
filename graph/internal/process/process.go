// Package process identifies the processes of a host, so that the owner of a lease can be
// found to have ended although its number is in use again.
package process

import (
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Process is what the name of an owner says about the process that made it.
type Process struct {
	// Host is the name of the host.
	Host string

	// PID is the number of the process.
	PID int

	boot  string // identifies the boot of the host and its process numbers; "": unknown
	start string // when the process started; "": unknown
}

// current is this process.
var current = sync.OnceValue(func() Process {
	p := Process{boot: hostID(), PID: os.Getpid()}
	p.Host, _ = os.Hostname()
	p.Host = strings.NewReplacer("/", "-", afterSign, "-").Replace(p.Host)
	p.start, _ = processStart(p.PID)
	return p
})

// ownerPrefix is the part that the names of all owners of this process share.
var ownerPrefix = sync.OnceValue(func() string {
	p := current()
	unique := p.start
	if unique == "" { // the process number may be used again
		unique = strconv.FormatInt(time.Now().UnixNano(), 36)
	}
	return strings.Join([]string{"1", p.boot, p.Host, strconv.Itoa(p.PID), p.start, unique}, "/") + "."
})

// owners counts the owners of this process.
var owners atomic.Int64

// NewOwner returns a name that no other call returns, in any process.
func NewOwner() string { return ownerPrefix() + strconv.FormatInt(owners.Add(1), 10) }

// ParseOwner returns the process that made a name; ok is false if NewOwner did not make
// it.
func ParseOwner(owner string) (p Process, ok bool) {
	part := strings.Split(owner, "/")
	if len(part) != 6 || part[0] != "1" {
		return p, false
	}
	pid, err := strconv.Atoi(part[3])
	return Process{boot: part[1], Host: part[2], PID: pid, start: part[4]}, err == nil
}

// HasOwnerEnded reports whether the process that made a name is known to have ended. Only
// processes of this host can be. A mark has no process: see NewMark.
func HasOwnerEnded(owner string) bool {
	if IsMark(owner) {
		return true
	}
	p, ok := ParseOwner(owner)
	if this := current(); !ok || p.boot == "" || p.boot != this.boot || p.PID == this.PID && p.start == this.start {
		return false
	}
	start, exists := processStart(p.PID)
	return !exists || start != "" && start != p.start
}

// FindOwner returns the number of the process that made a name. ok is false unless it is known to be a process of this
// host that has not ended.
func FindOwner(owner string) (pid int, ok bool) {
	p, ok := ParseOwner(owner)
	return p.PID, ok && p.boot != "" && p.boot == current().boot && !HasOwnerEnded(owner)
}
