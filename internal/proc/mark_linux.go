package proc

import (
	"bytes"
	"os"
	"strconv"
)

// endMarked kills every process of this user that began with the variable in its environment. A process that starts others while it is
// looked for is met by the next round.
func endMarked(mark string) {
	const rounds = 5
	for range rounds {
		if !killMarked(mark) {
			return
		}
	}
}

func killMarked(mark string) (found bool) {
	proc, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() || !marked(pid, mark) {
			continue
		}
		// The process is held first and looked at again, so that its id cannot mean another one meanwhile.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if marked(pid, mark) && p.Kill() == nil {
			found = true
		}
		p.Release()
	}
	return found
}

func marked(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // empty for a process that has ended
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00"))
}
