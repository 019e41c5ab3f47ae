package experiment

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/interpreter"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/agentfile"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/score"
	"raddle.dev/internal/storage/config"
)

// outside runs scripts and asks judges, whose replies are runs of the store, too.
type outside struct {
	process *app.Process
	hooks   app.UIHooks

	once  sync.Once // writes the judge
	dir   string    // of the judge
	judge error     // why it could not be written
}

// scriptTimeout is how long a script may take for one result.
const scriptTimeout = 2 * time.Minute

// RunScript runs a script as the program that its name says, in its own directory, without the keys of providers.
func (o *outside) RunScript(ctx context.Context, path string, input []byte) ([]byte, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	env, _ := interpreter.FilterEnvironment(o.process.Tools.ScriptEnv(), dir, []string{dir})
	program := path
	var args []string
	switch filepath.Ext(path) {
	case ".py":
		program = interpreter.Search{Path: environ.Environ(env).Get("PATH"), Packages: []string{dir}, Workspace: dir}.FindPython()
		args = []string{path}
	case ".sh":
		program = "bash"
		args = []string{path}
	}
	res, err := proc.Run(ctx, proc.Command{
		Path:    program,
		Args:    args,
		Dir:     dir,
		Env:     env,
		Stdin:   input,
		Timeout: scriptTimeout,
	})
	if err != nil {
		if said := lastLine(res.Stderr); said != "" {
			return nil, fmt.Errorf("%s: %w: %s", filepath.Base(path), err, said)
		}
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return res.Stdout, nil
}

// lastLine returns the last line that a script has printed, which is that of the error in most languages.
func lastLine(text []byte) string {
	lines := strings.Split(strings.TrimSpace(string(proc.StripEscapes(text))), "\n")
	return wording.CutText(lines[len(lines)-1], 200, "…")
}

// judgeAgent is the agent that judges.
const judgeAgent = "eval-judge"

// AskJudge asks a model in a run of its own, whose id follows from the question: it is asked once.
func (o *outside) AskJudge(ctx context.Context, model string, q score.Question) (reply string, cost float64, err error) {
	o.once.Do(func() { o.dir, o.judge = o.writeJudge(q.Instructions) })
	if o.judge != nil {
		return "", 0, o.judge
	}
	found, err := findAttempt(ctx, o.process, []string{judgeAgent, model, o.process.Config.Model, q.Instructions, q.Text})
	if err != nil {
		return "", 0, err
	}
	found.repeatFailed() // a judge that was away is asked again
	id := found.id
	if !found.ended {
		if err := o.drive(ctx, model, q.Text, id, found.started); err != nil {
			return "", 0, err
		}
	}
	r, err := readResult(ctx, o.process, id)
	if err != nil {
		return "", 0, err
	}
	if r.Status != score.StatusDone {
		return "", r.Cost, failure.NewInvalid("raddle explain "+id, "the judge has failed: %s", r.Error)
	}
	return r.Output, r.Cost, nil
}

func (o *outside) drive(ctx context.Context, model, text, id string, started bool) (err error) {
	var run *app.Run
	if started {
		run, err = o.process.ResumeRun(ctx, id, app.ResumeOptions{UIHooks: o.hooks})
	} else {
		run, err = o.process.StartRun(app.Request{
			Agent:    o.dir,
			Prompt:   text,
			Model:    model,
			Headless: true,
			Session:  "temp",
			ID:       id,
			UIHooks:  o.hooks,
		})
	}
	if err != nil {
		return err
	}
	defer run.Close()
	return driveToEnd(ctx, o.process, run)
}

// writeJudge writes the agent that judges below the cache, and returns its directory.
func (o *outside) writeJudge(instructions string) (string, error) {
	text, err := agentfile.WriteConfig(
		agentfile.Field{Key: "name", Value: judgeAgent},
		agentfile.Field{Key: "description", Value: "Grades answers by a rubric"},
		agentfile.Field{Key: "skills_enabled", Value: false},
		agentfile.Field{Key: "inject_user_instructions", Value: false},
		agentfile.Field{Key: "instructions", Value: instructions},
	)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(o.process.Dirs.Cache, "eval", judgeAgent)
	return dir, config.WritePrivate(filepath.Join(dir, config.FileName), text)
}
