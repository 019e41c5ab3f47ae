package builtin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
)

// Limits of background commands.
const (
	mostJobs   = 16                  // of a thread, at the same time
	jobOutput  = 1 << 30             // bytes that one prints before it is ended
	recordLife = 30 * 24 * time.Hour // of the records of a thread, after the last change
)

// Jobs are the background commands of a process: what command_start has started, by the thread of the run. A command
// that ends, or whose process of raddle ends in any way, is never started again. Jobs is safe for concurrent use; its
// fields do not change after the first use.
type Jobs struct {
	// Dir is the directory of the records of commands, from which a later process knows what was started and what it
	// has printed; "": there are none.
	Dir string
	// Thread returns the thread of the run that makes a call; nil: all calls are of one.
	Thread func(ctx context.Context) string
	// Redact takes secrets out of a text that is recorded; nil: there are none.
	Redact func(text string) string

	mu      sync.Mutex
	threads map[string][]*job // those that this process has started, in their order
	swept   sync.Once
}

// A JobState is what is known about a background command.
type JobState struct {
	ID      string // by which the model names it, such as job-1
	Command string
	State   string // such as "running for 3s" or "exited with code 0"
	Running bool   // it can be stopped here
	Printed string // the last line that it has printed
}

// A jobRecord is what a later process knows about a command.
type jobRecord struct {
	ID      string      `json:"id"`
	Command string      `json:"command"`
	Key     string      `json:"key,omitempty"` // of the call that has started it
	Owner   proc.Handle `json:"owner"`         // the process of raddle
	Child   proc.Handle `json:"child,omitzero"`
	Started time.Time   `json:"started"`
	End     string      `json:"end,omitempty"` // how it has ended; empty: it runs, if its owner is alive
	Output  string      `json:"output,omitempty"`
}

// These say how a command has ended that did not end by itself.
var (
	errJobStopped = errors.New("was stopped")
	errRunEnded   = errors.New("was ended with the run")
)

// jobLost says how a command has ended whose process of raddle is gone.
const jobLost = "ended when raddle was stopped; it is not started again by itself"

func (js *Jobs) threadOf(ctx context.Context) string {
	if js.Thread == nil {
		return ""
	}
	return js.Thread(ctx)
}

func (js *Jobs) redactText(text string) string {
	if js.Redact == nil {
		return text
	}
	return js.Redact(text)
}

// threadDir returns the directory of the records of a thread; "": they are not recorded.
func (js *Jobs) threadDir(thread string) string {
	if js.Dir == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(thread))
	return filepath.Join(js.Dir, hex.EncodeToString(sum[:16]))
}

// startJob starts a command, in a box unless boxed is nil, and returns it. A call with the key of an earlier one gets
// what that one has started, which may be a command of a process that has ended.
func (js *Jobs) startJob(ctx context.Context, command proc.Command, record jobRecord, input bool, boxed *boxedRun) (*job, error) {
	thread := js.threadOf(ctx)
	js.mu.Lock()
	defer js.mu.Unlock()
	own := js.threads[thread]
	running := 0
	for _, j := range own {
		if record.Key != "" && j.record.Key == record.Key {
			return j, nil
		}
		if !j.hasEnded() {
			running++
		}
	}
	past := js.readRecords(thread)
	for _, r := range past {
		if record.Key != "" && r.Key == record.Key {
			return js.newPastJob(thread, r), nil
		}
	}
	if running >= mostJobs {
		return nil, fmt.Errorf("%d background commands are running already: stop one with command_stop", running)
	}
	record.ID, record.Owner, record.Started = "job-"+strconv.Itoa(max(len(own), lastNumber(past))+1), proc.CurrentHandle(), time.Now()
	j := &job{
		record: record,
		file:   js.recordFile(thread, record.ID),
		redact: js.redactText,
		boxed:  boxed,
		done:   make(chan struct{}),
		begun:  make(chan struct{}),
	}
	if err := j.runCommand(ctx, command, input); err != nil {
		return nil, err
	}
	if js.threads == nil {
		js.threads = map[string][]*job{}
	}
	js.threads[thread] = append(own, j)
	return j, nil
}

// recordFile returns the file of the record of a command; "": it is not recorded.
func (js *Jobs) recordFile(thread, id string) string {
	dir := js.threadDir(thread)
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, id+".json")
}

// findJob returns a command of a thread. The error is for the model.
func (js *Jobs) findJob(thread, id string) (*job, error) {
	all := js.listJobs(thread)
	var ids []string
	for _, j := range all {
		if j.record.ID == id {
			return j, nil
		}
		ids = append(ids, j.record.ID)
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("there is no %s: this run has started no background command. Start one with command_start", id)
	}
	return nil, fmt.Errorf("there is no %s in this run, only %s", id, strings.Join(ids, ", "))
}

// listJobs returns the commands of a thread, also those of processes that have ended, in their order.
func (js *Jobs) listJobs(thread string) (list []*job) {
	js.mu.Lock()
	defer js.mu.Unlock()
	own := js.threads[thread]
	for _, r := range js.readRecords(thread) {
		if !slices.ContainsFunc(own, func(j *job) bool { return j.record.ID == r.ID }) {
			list = append(list, js.newPastJob(thread, r))
		}
	}
	list = append(list, own...)
	slices.SortStableFunc(list, func(a, b *job) int { return jobNumber(a.record.ID) - jobNumber(b.record.ID) })
	return list
}

// newPastJob returns a command of another process.
func (js *Jobs) newPastJob(thread string, r jobRecord) *job {
	if r.End == "" && !r.Owner.IsAlive() {
		js.endLost(js.recordFile(thread, r.ID), &r)
	}
	j := &job{record: r, past: true, done: make(chan struct{})}
	if r.End == "" {
		j.record.End = fmt.Sprintf("belongs to another process of raddle (%d)", r.Owner.PID)
	}
	close(j.done)
	return j
}

// List returns the background commands of a thread.
func (js *Jobs) List(thread string) (list []JobState) {
	for _, j := range js.listJobs(thread) {
		list = append(list, j.describeJob())
	}
	return list
}

// Stop ends a background command of a thread, with everything that it has started.
func (js *Jobs) Stop(thread, id string) (JobState, error) {
	j, err := js.findJob(thread, id)
	if err != nil {
		return JobState{}, err
	}
	j.stopJob(errJobStopped)
	return j.describeJob(), nil
}

// EndThread ends the background commands of a thread, because its run has ended.
func (js *Jobs) EndThread(thread string) {
	js.mu.Lock()
	list := slices.Clone(js.threads[thread])
	js.mu.Unlock()
	endJobs(list)
}

// Close ends all background commands of this process.
func (js *Jobs) Close() error {
	js.mu.Lock()
	var list []*job
	for _, own := range js.threads {
		list = append(list, own...)
	}
	js.mu.Unlock()
	endJobs(list)
	return nil
}

// endJobs ends commands at the same time.
func endJobs(list []*job) {
	var all sync.WaitGroup
	for _, j := range list {
		all.Go(func() { j.stopJob(errRunEnded) })
	}
	all.Wait()
}

// EndLost ends what commands of processes of raddle that have been killed have left behind: those of a thread, and of
// all threads on the first call.
func (js *Jobs) EndLost(thread string) {
	if js.Dir == "" {
		return
	}
	js.swept.Do(func() {
		dirs, _ := os.ReadDir(js.Dir) // without the directory there are none
		for _, dir := range dirs {
			js.sweepDir(filepath.Join(js.Dir, dir.Name()))
		}
	})
	js.sweepDir(js.threadDir(thread))
}

// sweepDir ends what is left of the commands of a thread, and removes records that are old.
func (js *Jobs) sweepDir(dir string) {
	records := readRecords(dir)
	for i := range records {
		if r := &records[i]; r.End == "" && !r.Owner.IsAlive() {
			js.endLost(filepath.Join(dir, r.ID+".json"), r)
		}
	}
	if info, err := os.Stat(dir); err == nil && time.Since(info.ModTime()) > recordLife && !slices.ContainsFunc(records, func(r jobRecord) bool { return r.End == "" }) {
		_ = os.RemoveAll(dir)
	}
}

// endLost ends what is left of a command whose process of raddle is gone, and records that.
func (js *Jobs) endLost(file string, r *jobRecord) {
	if r.Child.PID == 0 {
		r.End = "was cut off while it was started, " + jobLost
	} else if _, err := proc.EndHandle(r.Child); err != nil {
		r.End = fmt.Sprintf("%s. Parts of it may still run: %v", jobLost, err)
	} else {
		r.End = jobLost
	}
	_ = writeRecord(file, *r) // otherwise the next process finds it as this one did
}

// largestRecord is the size in bytes of a record above which it is not read.
const largestRecord = 1 << 20

// readRecords returns the records of a thread, in their order.
func (js *Jobs) readRecords(thread string) []jobRecord { return readRecords(js.threadDir(thread)) }

func readRecords(dir string) (list []jobRecord) {
	if dir == "" {
		return nil
	}
	entries, _ := os.ReadDir(dir) // without the directory there are none
	for _, e := range entries {
		if jobNumber(strings.TrimSuffix(e.Name(), ".json")) == 0 {
			continue
		}
		var r jobRecord
		text, err := plainfile.Read(filepath.Join(dir, e.Name()), largestRecord)
		if err == nil && json.Unmarshal(text, &r) == nil && r.ID+".json" == e.Name() {
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b jobRecord) int { return jobNumber(a.ID) - jobNumber(b.ID) })
	return list
}

// writeRecord writes a record, all of it or nothing.
func writeRecord(file string, r jobRecord) error {
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(file), "new-") // only this user can read it
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// jobNumber returns the number in the name of a command; 0: it is no such name.
func jobNumber(id string) int {
	number, ok := strings.CutPrefix(id, "job-")
	n, err := strconv.Atoi(number)
	if !ok || err != nil || n < 1 {
		return 0
	}
	return n
}

func lastNumber(records []jobRecord) int {
	if len(records) == 0 {
		return 0
	}
	return jobNumber(records[len(records)-1].ID)
}
