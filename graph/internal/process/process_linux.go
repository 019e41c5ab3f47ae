package process

import (
	"bytes"
	"encoding/hex"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// hostID identifies the machine, its boot and the namespace of process numbers: in
// another container the same number is another process. It is "" if unknown.
func hostID() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	machine, _ := os.ReadFile("/etc/machine-id") // many containers have none
	h := fnv.New128a()
	for _, part := range [][]byte{boot, []byte(space), machine} {
		_, _ = h.Write(append(part, 0)) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}

// processStart returns when a process started, in ticks since the boot ("": unknown),
// and whether it exists. A process that has ended and was not waited for does not
// exist.
func processStart(pid int) (start string, exists bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, fs.ErrNotExist) { // or it is hidden from this user
		return "", !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
	}
	if err != nil {
		return "", !errors.Is(err, syscall.ESRCH)
	}
	// the name before it may contain anything
	_, rest, ok := bytes.Cut(b[max(0, bytes.LastIndexByte(b, ')')):], []byte(") "))
	f := bytes.Fields(rest)
	if !ok || len(f) < 20 {
		return "", true
	}
	return string(f[19]), f[0][0] != 'Z' && f[0][0] != 'X'
}
