package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// A group is the job object of a child: whatever the child starts is in it, cannot leave it, and ends with it. The
// system ends all of them when the last handle of the job is closed, and so also when this process ends in any way.
type group struct {
	job windows.Handle // zero before the start and after the end
}

// childAttributes lets the child start suspended, so that it runs nothing before it is in its job.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.CREATE_SUSPENDED}
}

// startProcess starts the child in a job of its own. If it fails, the child runs no more.
func (ch *child) startProcess() error {
	job, err := createJob()
	if err != nil {
		return err
	}
	if err := ch.cmd.Start(); err != nil {
		return errors.Join(err, windows.CloseHandle(job))
	}
	if err := enterJob(job, ch.cmd.Process); err != nil {
		err = errors.Join(err, ch.cmd.Process.Kill())
		_ = ch.cmd.Wait() // it was killed
		return errors.Join(err, windows.CloseHandle(job))
	}
	ch.group.job = job
	return nil
}

// createJob creates a job whose processes end when its last handle is closed.
func createJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job: %w", err)
	}
	limits := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	if err != nil {
		return 0, errors.Join(fmt.Errorf("bind a job to this process: %w", err), windows.CloseHandle(job))
	}
	return job, nil
}

// enterJob puts a suspended process into a job, and lets it run.
func enterJob(job windows.Handle, p *os.Process) error {
	var inner error
	err := p.WithHandle(func(handle uintptr) { inner = windows.AssignProcessToJobObject(job, windows.Handle(handle)) })
	if err := errors.Join(err, inner); err != nil {
		return fmt.Errorf("put the process into its job: %w", err)
	}
	if err := resumeThreads(uint32(p.Pid)); err != nil {
		return fmt.Errorf("let the process run: %w", err)
	}
	return nil
}

// resumeThreads lets the threads of a process run that started suspended: it has one.
func resumeThreads(pid uint32) error {
	all, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPTHREAD, 0)
	if err != nil {
		return err
	}
	defer windows.CloseHandle(all)
	entry := windows.ThreadEntry32{Size: uint32(unsafe.Sizeof(windows.ThreadEntry32{}))}
	resumed := false
	for err = windows.Thread32First(all, &entry); err == nil; err = windows.Thread32Next(all, &entry) {
		if entry.OwnerProcessID != pid {
			continue
		}
		thread, err := windows.OpenThread(windows.THREAD_SUSPEND_RESUME, false, entry.ThreadID)
		if err != nil {
			return err
		}
		_, err = windows.ResumeThread(thread)
		if err := errors.Join(err, windows.CloseHandle(thread)); err != nil {
			return err
		}
		resumed = true
	}
	if !errors.Is(err, windows.ERROR_NO_MORE_FILES) {
		return err
	}
	if !resumed {
		return errors.New("it has no thread")
	}
	return nil
}

// waitProcess waits for the end of the child. Its job keeps what it has started.
func (ch *child) waitProcess() error { return ch.cmd.Wait() }

// reapProcess closes the job.
func (ch *child) reapProcess() error {
	job := ch.group.job
	ch.group.job = 0
	return windows.CloseHandle(job)
}

// terminateChild ends the job at once: there is no request to end that every program understands.
func (ch *child) terminateChild() { ch.killChild() }

// killChild ends the child and whatever it has started.
func (ch *child) killChild() { windows.TerminateJobObject(ch.group.job, 1) }

// lendTerminal gives the child the terminal. There is no foreground group.
func (ch *child) lendTerminal(t *Terminal) {
	ch.cmd.Stdin, ch.cmd.Stdout, ch.cmd.Stderr = t.In, t.Out, t.Out
}

func (ch *child) takeTerminal() {}

// killGroup ends one process. What it had started is in the job of the process that started it, and has ended with
// that.
func killGroup(pid int) error {
	p, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(pid))
	if err != nil {
		return err
	}
	return errors.Join(windows.TerminateProcess(p, 1), windows.CloseHandle(p))
}

// signalName returns nothing: there are no signals.
func signalName(*os.ProcessState) string { return "" }
