package cli

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

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/app"
	"raddle.dev/internal/config"
	"raddle.dev/internal/term"
)

// doctorOptions are the flags of "doctor".
type doctorOptions struct {
	online bool
	output string
}

func newDoctorCommand(env *environment) *cobra.Command {
	var opts doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor [AGENT]",
		Short: "Check that everything works, and say what to do if it does not",
		Long: `It checks the configuration, the key of your model, the store of runs, the programs that scripts need and the terminal; with an agent
also its files, models, tools and MCP servers, which it starts. --online sends one short request to the model. The exit code is 0 if
nothing is marked ✗.`,
		Example: `  raddle doctor
  raddle doctor explore --online`,
		Args:              checkArgCount(0, 1, ""),
		ValidArgsFunction: completeAgents(env),
		RunE:              func(cmd *cobra.Command, args []string) error { return runDoctor(cmd.Context(), env, opts, args) },
	}
	addOutputFlag(cmd, &opts.output, "write it as `FORMAT`: text or json")
	cmd.Flags().BoolVar(&opts.online, "online", false, "send one short request to the model, without asking first")
	return cmd
}

// These are the results of a check.
const (
	checkOK      = "ok"
	checkWarning = "warning"
	checkError   = "error"
)

// A checkResult is one line of "doctor".
type checkResult struct {
	Check  string `json:"check"`
	Status string `json:"status"`
	Text   string `json:"text"`
	Next   string `json:"next,omitempty"` // what to do
	code   int    // exit code of an error
}

// A doctor collects the results of checks.
type doctor struct {
	env     *environment
	results []checkResult
}

func (d *doctor) addOK(check, format string, args ...any) {
	d.results = append(d.results, checkResult{Check: check, Status: checkOK, Text: fmt.Sprintf(format, args...)})
}

func (d *doctor) addWarning(check, next, format string, args ...any) {
	d.results = append(d.results, checkResult{Check: check, Status: checkWarning, Text: fmt.Sprintf(format, args...), Next: next})
}

func (d *doctor) addError(code int, check, next, format string, args ...any) {
	d.results = append(d.results, checkResult{Check: check, Status: checkError, Text: fmt.Sprintf(format, args...), Next: next, code: code})
}

// runDoctor also works with an invalid configuration. The exit code is that of the first error.
func runDoctor(ctx context.Context, env *environment, opts doctorOptions, args []string) error {
	env.openWithFaults()
	d := &doctor{env: env}
	d.addOK("version", "raddle %s, %s/%s", app.Version(), runtime.GOOS, runtime.GOARCH)
	d.checkConfig()
	if len(args) == 0 {
		d.checkModels(ctx, []string{env.process.Config.Model}, opts)
	} else {
		d.checkAgent(ctx, args[0], opts)
	}
	d.checkStore(ctx)
	d.checkPrograms()
	if opts.output == formatText {
		d.checkTerminal()
	}
	if err := env.printResult(opts.output, d.results, d.text); err != nil {
		return err
	}
	for _, r := range d.results {
		if r.Status == checkError {
			return silentExit{r.code}
		}
	}
	return nil
}

// text returns the results as lines.
func (d *doctor) text() string {
	marks := map[string]string{checkOK: d.env.out.Paint(term.Green, "✓"), checkWarning: d.env.out.Paint(term.Yellow, "!"), checkError: d.env.out.Paint(term.Red, "✗")}
	var b strings.Builder
	const width = 10
	for _, r := range d.results {
		indent := "\n" + strings.Repeat(" ", width+3)
		fmt.Fprintf(&b, "%s %-*s %s\n", marks[r.Status], width, r.Check, strings.ReplaceAll(plainText(r.Text), "\n", indent))
		if r.Next != "" {
			fmt.Fprintf(&b, "  %-*s %s\n", width, "", "next: "+strings.ReplaceAll(plainText(r.Next), "\n", indent))
		}
	}
	return b.String()
}

// checkConfig checks config.yaml and the file of stored keys.
func (d *doctor) checkConfig() {
	p := d.env.process
	path := p.Dirs.ShortPath(filepath.Join(p.Dirs.Config, config.FileName))
	var faults *config.FileError
	switch _, err := os.Stat(filepath.Join(p.Dirs.Config, config.FileName)); {
	case errors.As(d.env.problem, &faults):
		for _, f := range faults.Findings {
			f.Pos.File = p.Dirs.ShortPath(f.Pos.File)
			d.addError(exitInvalid, "config", "raddle config edit", "%s", f.String())
		}
	case d.env.problem != nil:
		d.addError(exitInvalid, "config", nextStep(d.env, d.env.problem), "%v", d.env.problem)
	case errors.Is(err, fs.ErrNotExist):
		d.addOK("config", "%s does not exist, and is not required", path)
	default:
		d.addOK("config", "%s", path)
	}
	keys := p.Dirs.ShortPath(p.Keys.Path())
	if _, err := p.Keys.Names(); err != nil {
		d.addError(exitInvalid, "keys", "", "%v", err)
	} else if info, err := os.Stat(p.Keys.Path()); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		d.addWarning("keys", "chmod 600 "+quoteWord(keys), "other users can read %s", keys)
	}
}

// checkModels checks that models have their keys, and that the first one answers.
func (d *doctor) checkModels(ctx context.Context, ids []string, opts doctorOptions) {
	if ids = slices.DeleteFunc(ids, func(id string) bool { return id == "" }); len(ids) == 0 {
		d.addWarning("model", "raddle init", "none is set")
		return
	}
	for i, id := range ids {
		if d.checkModel(id) && i == 0 {
			d.checkReply(ctx, id, opts)
		}
	}
}

// checkModel reports whether a model can be called, as far as can be seen without a call.
func (d *doctor) checkModel(id string) bool {
	models := d.env.process.Models
	if strings.HasPrefix(id, "script:") {
		d.addOK("model", "%s replays a transcript", id)
		return false
	}
	if err := models.CheckNames(d.env.process.Dirs.Work, "", id); err != nil {
		d.addError(exitInvalid, "model", nextStep(d.env, err), "%v", err)
		return false
	}
	name, _, _ := strings.Cut(id, ":")
	info, _ := models.FindKey(name)
	switch {
	case !info.Ready && info.Needs != "":
		d.addError(exitAuth, "model", "raddle login "+info.Client+"  (or set "+info.Needs+")", "%s: there is no key of %s", id, info.Client)
	case !info.Ready:
		d.addError(exitAuth, "model", "raddle login "+info.Client, "%s: client %q is not ready", id, info.Client)
	case info.Key == "":
		d.addOK("model", "%s, which needs no key", id)
	default:
		d.addOK("model", "%s, key from %s", id, info.Key)
	}
	return info.Ready
}

// checkReply sends a request if the user wants that.
func (d *doctor) checkReply(ctx context.Context, id string, opts doctorOptions) {
	if !opts.online {
		who := d.env.newPrompter()
		if opts.output != formatText || who == nil {
			return
		}
		if yes, err := askYesNo(ctx, d.env, who, "Send one short request to "+id+" to see whether it answers?", "yes"); err != nil || !yes {
			return
		}
	}
	text, err := tryModel(ctx, d.env, id)
	if err != nil {
		d.addError(cmp.Or(authCode(err), exitFailed), "reply", nextStep(d.env, err), "%v", err)
		return
	}
	d.addOK("reply", "%s", text)
}

// authCode returns exitAuth for an error about a key, otherwise 0.
func authCode(err error) int {
	if code := exitCode(err); code == exitAuth {
		return code
	}
	return 0
}

// checkAgent checks the files of an agent, its models, tools and servers.
func (d *doctor) checkAgent(ctx context.Context, name string, opts doctorOptions) {
	a, err := d.env.process.Load(app.LoadRequest{Agent: name})
	if err == nil {
		_, err = a.CompileGraph()
	}
	_, noModel := errors.AsType[*flow.MissingModelError](err)
	_, noValue := errors.AsType[*flow.VariablesError](err)
	if err != nil && !noModel && !noValue {
		next, code := nextStep(d.env, err), exitCode(err)
		if code == exitInvalid {
			next = cmp.Or(next, "raddle check "+quoteWord(name))
		}
		d.addError(code, "agent", next, "%v", err)
		return
	}
	if len(a.Findings) > 0 {
		d.addWarning("agent", "raddle check "+quoteWord(name), "%s has %d findings", a.Name, len(a.Findings))
	} else {
		d.addOK("agent", "%s in %s", a.Name, d.env.process.Dirs.ShortPath(a.Dir))
	}
	d.checkModels(ctx, a.Models(), opts)
	for _, problem := range a.Tools.Problems {
		d.addWarning("tools", "", "%s", problem)
	}
	for _, id := range a.Tools.Servers {
		tools, failed := a.Tools.Serve(ctx, []string{id})
		if len(failed) > 0 {
			d.addError(exitFailed, "server", "", "%s: %v", id, errors.Join(failed...))
			continue
		}
		d.addOK("server", "%s started, with %d functions", id, len(tools))
	}
}

// checkStore checks that the store of runs can be written.
func (d *doctor) checkStore(ctx context.Context) {
	archive := d.env.process.Runs
	place, isFile := strings.CutPrefix(archive.StoreURL(), "sqlite:")
	short := d.env.process.Dirs.ShortPath(place)
	const next = "change the permissions, or: raddle config set store sqlite:PATH"
	switch info, err := os.Stat(place); {
	case !isFile:
		d.addOK("store", "%s", place)
	case errors.Is(err, fs.ErrNotExist):
		if err := tryDirectory(filepath.Dir(place)); err != nil {
			d.addError(exitFailed, "store", next, "%s cannot be created: %v", short, err)
			return
		}
		d.addOK("store", "%s, created by the first run", short)
	case err != nil:
		d.addError(exitFailed, "store", next, "%v", err)
	default:
		list, err := archive.ListRuns(ctx, "")
		if err != nil {
			d.addError(exitFailed, "store", nextStep(d.env, err), "%v", err)
			return
		}
		if f, err := os.OpenFile(place, os.O_RDWR, 0); err != nil {
			d.addError(exitFailed, "store", next, "%s cannot be written: %v", short, err)
		} else {
			version := readStoreVersion(f)
			_ = f.Close() // nothing was written
			d.addOK("store", "%s, %s, %.1f MB, format %d", short, countRuns(len(list)), float64(info.Size())/1e6, version)
		}
	}
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

// checkPrograms checks that the programs for scripts exist.
func (d *doctor) checkPrograms() {
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
		d.addOK("programs", "%s", joinWords(found))
	}
}

// checkTerminal reports what the terminal can show.
func (d *doctor) checkTerminal() {
	screen := d.env.err
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
	if showsLinks(os.Getenv) {
		has = append(has, "links")
	}
	has = append(has, "bracketed paste", "clipboard if the terminal allows it (OSC 52)")
	if usesUTF8(os.Getenv) {
		d.addOK("terminal", "%s", joinWords(append(has, "UTF-8")))
	} else {
		d.addWarning("terminal", "export LANG=C.UTF-8", "%s; the locale is not UTF-8, so other letters than ASCII may look wrong", joinWords(has))
	}
}

// usesUTF8 reports whether the locale of the environment uses UTF-8.
func usesUTF8(getenv func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return runtime.GOOS == "windows" || strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

func countRuns(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}
