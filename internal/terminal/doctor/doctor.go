package doctor

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// These are the states of a result.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "error"
)

// A Result is what a check found.
type Result struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do; "" if Err says it
	Err    error  `json:"-"`              // why the status is Failed
}

// A Doctor collects the results of checks of a process.
type Doctor struct {
	Process *app.Process
	Results []Result
}

func (d *Doctor) addOK(check, format string, args ...any) {
	d.Results = append(d.Results, Result{Check: check, Status: OK, Text: fmt.Sprintf(format, args...)})
}

func (d *Doctor) addWarning(check, next, format string, args ...any) {
	d.Results = append(d.Results, Result{Check: check, Status: Warning, Text: fmt.Sprintf(format, args...), Next: next})
}

// addError adds an error. next may be "".
func (d *Doctor) addError(check, next string, err error) {
	d.Results = append(d.Results, Result{Check: check, Status: Failed, Text: err.Error(), Next: next, Err: err})
}

// CheckVersion names the version and the system.
func (d *Doctor) CheckVersion() {
	d.addOK("version", "raddle %s, %s/%s", app.Version(), runtime.GOOS, runtime.GOARCH)
}

// CheckConfig checks config.yaml, whose error is problem, and the file of stored keys.
func (d *Doctor) CheckConfig(problem error) {
	p := d.Process
	path := p.Dirs.ShortPath(filepath.Join(p.Dirs.Config, config.FileName))
	var faults *config.FileError
	switch _, err := os.Stat(filepath.Join(p.Dirs.Config, config.FileName)); {
	case errors.As(problem, &faults):
		for _, f := range faults.Findings {
			f.Pos.File = p.Dirs.ShortPath(f.Pos.File)
			d.Results = append(d.Results, Result{
				Check:  "config",
				Status: Failed,
				Text:   f.String(),
				Next:   "raddle config edit",
				Err:    problem,
			})
		}
	case problem != nil:
		d.addError("config", "", problem)
	case errors.Is(err, fs.ErrNotExist):
		d.addOK("config", "%s does not exist, and is not required", path)
	default:
		d.addOK("config", "%s", path)
	}
	for _, f := range p.DotenvFaults {
		d.addWarning("config", "", "%s:%d: %s", p.Dirs.ShortPath(f.Path), f.Line, f.Text)
	}
	keys := p.Dirs.ShortPath(p.Keys.Path())
	if _, err := p.Keys.Names(); err != nil {
		d.addError("keys", "", err)
	} else if info, err := os.Stat(p.Keys.Path()); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		d.addWarning("keys", "chmod 600 "+keys, "other users can read %s", keys)
	}
}

// CheckModels checks that models have their keys, and returns the first one if it can be asked.
func (d *Doctor) CheckModels(ids []string) (first string) {
	if ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" }); len(ids) == 0 {
		d.addWarning("model", "raddle init", "none is set")
		return ""
	}
	for i, id := range ids {
		if d.checkModel(id) && i == 0 {
			first = id
		}
	}
	return first
}

// checkModel reports whether a model can be asked, as far as can be seen without a request.
func (d *Doctor) checkModel(id string) bool {
	models := d.Process.Models
	if list := flow.SplitModels(id); len(list) > 1 {
		first := d.checkModel(list[0])
		for _, other := range list[1:] {
			d.checkModel(other)
		}
		return first
	}
	if strings.HasPrefix(id, "script:") {
		d.addOK("model", "%s replays a transcript", id)
		return false
	}
	if err := models.CheckNames(d.Process.Dirs.Work, "", id); err != nil {
		d.addError("model", "", err)
		return false
	}
	name, _, _ := strings.Cut(id, ":")
	info, _ := models.FindKey(name)
	unset := models.ListUnset([]string{id})
	for _, u := range unset {
		u.Pos.File = d.Process.Dirs.ShortPath(u.Pos.File)
		d.addError("model", "set "+u.Name+", or write the value", failure.NewInvalid("", "%s", u))
	}
	why := models.JudgeClientKey(name)
	switch {
	case len(unset) > 0:
		return false
	case why != "":
		d.Results = append(d.Results, Result{
			Check:  "model",
			Status: Failed,
			Text:   fmt.Sprintf("%s: what %s holds can be no key of %s: %s", id, info.Key, info.Client, why),
			Next:   "raddle login " + info.Client + "  (and remove the other one)",
			Err:    &llm.Error{Class: llm.Auth},
		})
		return false
	case info.Lacks != "":
		d.Results = append(d.Results, Result{
			Check:  "model",
			Status: Failed,
			Text:   id + ": " + info.Lacks,
			Err:    &llm.Error{Class: llm.Auth},
		})
	case info.From != "":
		d.addOK("model", "%s, credentials from %s", id, info.From)
	case !info.Ready:
		next := "raddle login " + info.Client
		if info.Needs != "" {
			next += "  (or set " + info.Needs + ")"
		}
		d.Results = append(d.Results, Result{
			Check:  "model",
			Status: Failed,
			Text:   id + ": there is no key of " + info.Client,
			Next:   next,
			Err:    &llm.Error{Class: llm.Auth},
		})
	case info.Key == "":
		d.addOK("model", "%s, which needs no key", id)
	default:
		d.addOK("model", "%s, key from %s", id, info.Key)
	}
	return info.Ready
}

// CheckReply sends one short request to a model.
func (d *Doctor) CheckReply(ctx context.Context, id string) {
	text, err := TryModel(ctx, d.Process, id)
	if err != nil {
		d.addError("reply", "", err)
		return
	}
	d.addOK("reply", "%s", text)
}

// TryModel sends one short request to a model, and returns how long the answer took and what it cost.
func TryModel(ctx context.Context, p *app.Process, id string) (string, error) {
	model, err := p.Models.Open(ctx, p.Dirs.Work, id)
	if err != nil {
		return "", err
	}
	began := time.Now()
	reply, err := llm.Generate(ctx, model, llm.Request{Messages: []llm.Message{llm.User("Answer with the word ok.")}})
	if err != nil {
		return "", err
	}
	what := "answered"
	if reply.Text() == "" {
		what = "answered with an empty text"
	}
	text := fmt.Sprintf("%s %s in %.1f s", id, what, time.Since(began).Seconds())
	const least = 0.0001
	switch dollars, known := p.Models.UsageCost(reply.Model, reply.Usage); {
	case known && dollars < least:
		text += ", for less than $0.0001"
	case known:
		text += fmt.Sprintf(", for $%.4f", dollars)
	}
	return text, nil
}

// CheckAgent checks the files of an agent, and returns it; nil if it cannot run.
func (d *Doctor) CheckAgent(name string) *flow.Agent {
	a, err := d.Process.Load(app.LoadRequest{Agent: name})
	if err == nil {
		_, err = a.CompileGraph()
	}
	_, noModel := errors.AsType[*flow.MissingModelError](err)
	_, noValue := errors.AsType[*flow.VariablesError](err)
	if err != nil && !noModel && !noValue {
		d.addError("agent", "", err)
		return nil
	}
	if findings := a.ListFindings(); len(findings) > 0 {
		d.addWarning("agent", "raddle check "+name, "%s: check reports %d findings", a.Name, len(findings))
		return a
	}
	d.addOK("agent", "%s in %s", a.Name, d.Process.Dirs.ShortPath(a.Dir))
	return a
}

// CheckTools checks the tools of an agent, and starts its servers.
func (d *Doctor) CheckTools(ctx context.Context, a *flow.Agent) {
	for _, problem := range a.Tools.Problems {
		d.addWarning("tools", "", "%s", problem)
	}
	for _, id := range a.Tools.Servers {
		tools, failed := a.Tools.Serve(ctx, []string{id})
		if len(failed) > 0 {
			d.addError("server", "", fmt.Errorf("%s: %w", id, errors.Join(failed...)))
			continue
		}
		d.addOK("server", "%s started, with %d functions", id, len(tools))
	}
}

// CheckKnowledge checks what the knowledge bases of an agent hold. It builds nothing.
func (d *Doctor) CheckKnowledge(ctx context.Context, agent string) {
	bases, err := d.Process.Knowledge().ListBases(ctx, agent)
	if err != nil {
		d.addError("knowledge", "", err)
		return
	}
	for _, base := range bases {
		switch {
		case !base.Built:
			d.addOK("knowledge", "%s: built by the first run", base.ID)
		case len(base.Unread) == 0:
			d.addOK("knowledge", "%s: %s", base.ID, wording.FormatCount(base.Status.Documents, "document"))
		}
		for _, u := range base.Unread {
			d.addWarning("knowledge", "mend or leave out what it names, then: raddle rag build "+agent, "%s: could not be read: %s", base.ID, term.CleanLine(u.String()))
		}
	}
}

// CheckStore checks that the store of runs can be written.
func (d *Doctor) CheckStore(ctx context.Context) {
	archive := d.Process.Runs
	place, isFile := strings.CutPrefix(archive.StoreURL(), "sqlite:")
	short := d.Process.Dirs.ShortPath(place)
	const next = "change the permissions, or: raddle config set store sqlite:PATH"
	switch info, err := os.Stat(place); {
	case !isFile && archive.KeepsRuns():
		count, err := archive.CountAllRuns(ctx)
		if err != nil {
			d.addError("store", "", err)
			return
		}
		d.addOK("store", "%s, %s", place, wording.FormatCount(count, "run"))
	case !isFile:
		if _, err := archive.OpenStore(); err != nil {
			d.addError("store", "", err)
			return
		}
		d.addOK("store", "%s", place)
	case errors.Is(err, fs.ErrNotExist):
		if err := tryDirectory(filepath.Dir(place)); err != nil {
			d.addError("store", next, fmt.Errorf("%s cannot be created: %w", short, err))
			return
		}
		d.addOK("store", "%s, created by the first run", short)
	case err != nil:
		d.addError("store", next, err)
	default:
		count, err := archive.CountAllRuns(ctx)
		if err != nil {
			d.addError("store", "", err)
			return
		}
		f, err := plainfile.Open(place)
		if err != nil {
			d.addError("store", next, fmt.Errorf("%s cannot be read: %w", short, err))
			return
		}
		defer func() { _ = f.Close() }() // only reads
		if err := tryWriting(place); err != nil {
			d.addError("store", next, fmt.Errorf("%s cannot be written: %w", short, err))
			return
		}
		d.addOK("store", "%s, %s, %.1f MB, format %d", short, wording.FormatCount(count, "run"), float64(info.Size())/1e6, readStoreVersion(f))
	}
}

// tryWriting returns why a file that exists cannot be written. It writes nothing.
func tryWriting(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// tryDirectory returns why a file in a directory, which may not exist yet, cannot be created.
func tryDirectory(dir string) error {
	for !config.IsDir(dir) && filepath.Dir(dir) != dir {
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".raddle-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// readStoreVersion returns the version of the format of a store, which SQLite keeps at a fixed place of its file.
func readStoreVersion(f io.ReaderAt) uint32 {
	const place = 60
	b := make([]byte, 4)
	if _, err := f.ReadAt(b, place); err != nil {
		return 0
	}
	return binary.BigEndian.Uint32(b)
}

// programs are what scripts and tools run with: each line needs one of its programs.
var programs = []struct {
	names []string
	use   string
	next  string
}{
	{[]string{"bash"}, "bash scripts and the tool execute_command", "install bash"},
	{[]string{"python3", "python"}, "Python scripts and tools", "install Python 3"},
	{[]string{"node"}, "TypeScript scripts and tools", "install Node.js"},
	{[]string{"tsx", "npx"}, "TypeScript scripts and tools", "npm install -g tsx"},
}

// CheckPrograms checks that the programs for scripts exist.
func (d *Doctor) CheckPrograms() {
	var found []string
	for _, p := range programs {
		i := slices.IndexFunc(p.names, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
		if i < 0 {
			d.addWarning("programs", p.next, "%s is missing, which %s need", p.names[0], p.use)
			continue
		}
		found = append(found, p.names[i])
	}
	if len(found) > 0 {
		d.addOK("programs", "%s", strings.Join(found, ", "))
	}
}

// CheckTerminal reports what the terminal of a screen can show. links says whether it shows links.
func (d *Doctor) CheckTerminal(screen *term.Screen, links bool) {
	switch {
	case !screen.IsTerminal():
		d.addOK("terminal", "none: raddle asks nothing and uses no colours")
		return
	case term.IsDumb():
		d.addWarning("terminal", "set TERM, for example to xterm-256color", "TERM is %q: only lines of text, without colours and live lines", os.Getenv("TERM"))
		return
	}
	cols, rows := screen.Size()
	has := []string{fmt.Sprintf("%d×%d", cols, rows)}
	if screen.Colors {
		has = append(has, "colours")
	}
	if links {
		has = append(has, "links")
	}
	has = append(has, "bracketed paste", "clipboard if the terminal allows it (OSC 52)")
	if usesUTF8(os.Getenv) {
		d.addOK("terminal", "%s", strings.Join(append(has, "UTF-8"), ", "))
		return
	}
	d.addWarning("terminal", "export LANG=C.UTF-8", "%s; the locale is not UTF-8, so other letters than ASCII may look wrong", strings.Join(has, ", "))
}

// usesUTF8 reports whether the locale of the environment uses UTF-8.
func usesUTF8(getenv func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return runtime.GOOS == "windows" || strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}
