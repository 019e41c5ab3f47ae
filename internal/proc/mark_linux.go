package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// endMarked kills every process of this user that started with the variable in its environment. If a process starts others during the
// search, the next round finds them.
func endMarked(mark string) {
	const rounds = 5
	for range rounds {
		if !killMarked(mark, allProcesses()) {
			return
		}
	}
}

// endMarkedSince does the same as endMarked for the processes that a child that has just ended may have started. Process ids are assigned in
// ascending order, so that after a short life only the ids above the child's are checked.
func endMarkedSince(mark string, child int, life time.Duration) {
	const (
		shortLife = 5 * time.Second // far less than the system needs to use all ids and start again
		mostIDs   = 1000
	)
	last, err := lastProcess()
	if err != nil || life > shortLife || last < child || last-child > mostIDs {
		endMarked(mark)
		return
	}
	var newer []int
	for pid := child + 1; pid <= last; pid++ {
		newer = append(newer, pid)
	}
	if killMarked(mark, newer) {
		endMarked(mark)
	}
}

// lastProcess returns the id that the system assigned last.
func lastProcess() (int, error) {
	line, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, err
	}
	line = bytes.TrimSpace(line)
	return strconv.Atoi(string(line[bytes.LastIndexByte(line, ' ')+1:]))
}

func allProcesses() (pids []int) {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killMarked kills those of the processes that have the mark, and reports whether there was one.
func killMarked(mark string, pids []int) (found bool) {
	for _, pid := range pids {
		if pid == os.Getpid() || !hasMark(pid, mark) {
			continue
		}
		// The process is opened first and checked again, so that its id cannot mean another process in between.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		if hasMark(pid, mark) && p.Kill() == nil {
			found = true
		}
		p.Release()
	}
	return found
}

func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ") // empty for a process that has ended
	return err == nil && bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00"))
}
