package chaos

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/proving/testrun"
	"raddle.dev/internal/storage/config"
)

// world is what a server must know, as a file.
type world struct {
	Agent   string `json:"agent"`   // its directory
	Case    string `json:"case"`    // file and name of the test case that answers; "": everything is real
	Name    string `json:"name"`    //
	Model   string `json:"model"`   // replaces every model; "": none
	Effects string `json:"effects"` // the file for lines about effects
	Server  int    `json:"server"`  // the number of the server, from 0
}

// write writes the file of a world.
func (w *world) write(path string) error {
	text, err := json.Marshal(w)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}

// maxWorld is the size of the largest file of a world, in bytes.
const maxWorld = 1 << 20

// Rehearse makes a process that serves take part: the test case of the file answers for models and tools, and the
// effects of runs are written down. The process ends when its standard input does, so that no server outlives the
// command that has started it.
func Rehearse(p *app.Process, path string) error {
	text, err := plainfile.Read(path, maxWorld)
	if err != nil {
		return err
	}
	var w world
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	r, err := w.open(p)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(w.Effects, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	notes := &effectLog{to: log, server: w.Server}
	r.Begin = notes.begin
	p.Adjust = r.AdjustHost
	p.Config.Retention = config.Retention{} // no run of someone else is old
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	return nil
}

// open returns the rehearsal of a world, without what notes its effects. A case has its own answers in each of them.
func (w *world) open(p *app.Process) (*testrun.Rehearsal, error) {
	a, err := p.Load(app.LoadRequest{Agent: w.Agent})
	if err != nil {
		return nil, err
	}
	r := &testrun.Rehearsal{Agent: a, Model: w.Model, Price: p.Models.UsageCost}
	if w.Case == "" {
		return r, nil
	}
	f, err := testcase.Load(w.Case)
	if err != nil {
		return nil, err
	}
	for _, c := range f.Cases {
		if c.Name == w.Name {
			r.Case = c
		}
	}
	return r, nil
}

// effectLog writes lines about effects. It is safe for concurrent use; a line is written at once, so that a kill leaves
// it whole or not there.
type effectLog struct {
	server int

	mu sync.Mutex
	to io.Writer
}

// begin writes that an effect begins; end writes that it has ended.
func (l *effectLog) begin(key, what, node string) (end func(error)) {
	if key == "" {
		return func(error) {}
	}
	e := Effect{Key: key, What: what, Node: node, Server: l.server}
	l.write(e)
	return func(err error) {
		e.End = true
		e.Failed = err != nil
		l.write(e)
	}
}

// write writes one line. A line that cannot be written ends the process: without it the verdict would be wrong.
func (l *effectLog) write(e Effect) {
	e.At = time.Now().UnixMicro()
	line, err := json.Marshal(e)
	if err != nil {
		panic(err) // an Effect has nothing that cannot be JSON
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, err := l.to.Write(append(line, '\n')); err != nil {
		os.Exit(1)
	}
}

// readEffects returns the lines of all servers in a directory.
func readEffects(dir string) (list []Effect, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "effects-*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		f, err := plainfile.Open(path)
		if err != nil {
			return nil, err
		}
		for d := json.NewDecoder(f); ; {
			var e Effect
			if err = d.Decode(&e); err != nil {
				break // the end, or a line that a full disk has cut
			}
			list = append(list, e)
		}
		_ = f.Close()
		if err != io.EOF {
			return nil, err
		}
	}
	return list, nil
}
