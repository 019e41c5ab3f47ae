package proc

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"sync"
)

// bootID identifies the current boot of the machine: starts are counted from it.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
})

// inspectProcess reads the state (field 3) and the start (field 22, in clock ticks since the boot) of a process; see
// proc_pid_stat(5).
func inspectProcess(pid int) (processInfo, bool) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || bootID() == "" {
		return processInfo{}, false
	}
	// The second field is the program's name in parentheses, and may itself hold spaces and parentheses.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const state, start = 0, 19 // counted from the field after the second one
	if len(fields) <= start {
		return processInfo{}, false
	}
	return processInfo{
		start: bootID() + "/" + string(fields[start]),
		dead:  bytes.ContainsAny(fields[state], "ZX"),
	}, true
}
