package proc

import (
	"bytes"
	"os"
	"strconv"
	"time"
)

// endMarked kills every process of this user that started with the variable in its environment.
func endMarked(mark string) {
	last, _ := lastProcess()
	searchMarked(mark, allProcesses(), last)
}

// endMarkedSince does the same as endMarked for the processes that a child that has just ended may have started.
// Process ids are assigned in ascending order, so that after a short life only the ids above the child's are checked.
func endMarkedSince(mark string, child int, life time.Duration) {
	const (
		shortLife = 5 * time.Second // far less than the system needs to use all ids and start again
		maxIDs    = 1000
	)
	last, err := lastProcess()
	if err != nil || life > shortLife || last < child || last-child > maxIDs {
		endMarked(mark)
		return
	}
	searchMarked(mark, processesBetween(child, last), last)
}

// searchMarked kills those of the processes that have the mark. It searches again as long as it finds one, as long as
// one is just becoming another program, and among those that were started during a search: one that ended may have
// started another. last is the id that the system had assigned last when pids were listed.
func searchMarked(mark string, pids []int, last int) {
	const (
		rounds = 200
		pause  = time.Millisecond
	)
	for range rounds {
		killed, starting := killMarked(mark, pids)
		newest, err := lastProcess()
		switch {
		case killed || starting:
			if starting {
				time.Sleep(pause)
			}
			pids = allProcesses()
		case newest == last || err != nil:
			return
		case newest < last: // the ids start again
			pids = allProcesses()
		default:
			pids = processesBetween(last, newest)
		}
		last = newest
	}
}

// processesBetween returns the ids after one process up to another.
func processesBetween(after, last int) (pids []int) {
	for pid := after + 1; pid <= last; pid++ {
		pids = append(pids, pid)
	}
	return pids
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

// killMarked kills those of the processes that have the mark. It reports whether there was one, and whether there was
// one that is just becoming another program, so that its environment cannot be read yet.
func killMarked(mark string, pids []int) (killed, starting bool) {
	for _, pid := range pids {
		if pid == os.Getpid() {
			continue
		}
		switch marked, known := hasMark(pid, mark); {
		case !known:
			starting = true
			continue
		case !marked:
			continue
		}
		// The process is opened first and checked again, so that its id cannot mean another process in between.
		p, err := os.FindProcess(pid)
		if err != nil {
			continue
		}
		marked, known := hasMark(pid, mark)
		starting = starting || !known
		if marked && p.Kill() == nil {
			killed = true
		}
		p.Release()
	}
	return killed, starting
}

// hasMark reports whether the process started with the mark in its environment. known is false if that cannot be read
// yet: a process has neither arguments nor environment while the system replaces its program.
func hasMark(pid int, mark string) (marked, known bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	env, err := os.ReadFile(dir + "/environ")
	if err == nil && len(env) == 0 {
		// The environment is empty, or it was that of the program before. One that is read after the new program has
		// its arguments counts.
		args, err := os.ReadFile(dir + "/cmdline")
		if err != nil {
			return false, true
		}
		if len(args) == 0 {
			return false, !isStarting(dir)
		}
		env, _ = os.ReadFile(dir + "/environ")
	}
	return bytes.Contains(append([]byte{0}, env...), []byte("\x00"+mark+"\x00")), true
}

// isStarting reports whether a process without arguments is about to get some. One that has ended, and a thread of the
// system, which is a child of process 2, never get any.
func isStarting(dir string) bool {
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // after the name: the state and the parent
	if len(fields) < 2 {
		return false
	}
	state := string(fields[0])
	parent := string(fields[1])
	return state != "Z" && state != "X" && parent != "2" && parent != "0"
}
