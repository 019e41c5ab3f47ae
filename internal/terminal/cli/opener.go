package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/setup"
)

// An opener opens the process of a command on its console, once the command needs one.
type opener struct {
	*console.Console

	logLevel   string       // as --log-level says
	devLog     *slog.Logger // nil: there is no developer log
	traceFile  string       // as --trace says; empty: none
	user       string       // as --user says
	work       string       // the working directory; empty: that of this process
	offersLook bool         // a person without a model may look at recorded agents

	process *app.Process // nil: not opened
	problem error        // of the configuration
}

// redactBytes removes the secrets that the process knows from what is written.
func (op *opener) redactBytes(p []byte) []byte {
	if op.process == nil {
		return p
	}
	return op.process.Tools.SecretSet().Bytes(p)
}

func (op *opener) close() {
	op.Keyboard.Release()
	op.Screen.ClearLive()
	if op.process == nil {
		return
	}
	if err := op.process.CloseTrace(); err != nil {
		op.PrintWarning("--trace: " + err.Error())
	}
	_ = op.process.Close()
}

// addTraceFlag adds the flag for the file of a trace.
func addTraceFlag(cmd *cobra.Command, op *opener) {
	cmd.Flags().StringVar(&op.traceFile, "trace", "", "append the trace of what runs to `FILE`, as lines of OTLP in JSON")
}

// openProcess opens the process. Faults in its configuration are an error.
func (op *opener) openProcess() error {
	op.openWithFaults()
	op.process.User = op.user
	if op.problem == nil && op.traceFile != "" {
		return op.process.WriteTrace(op.traceFile)
	}
	return op.problem
}

// openWithFaults opens the process for commands that also work with an invalid
// configuration; its errors are in problem.
func (op *opener) openWithFaults() *app.Process {
	if op.process == nil {
		op.process, op.problem = app.Open(app.Options{Log: op.devLog, Work: op.work})
		_ = op.SetTheme(op.process.Config.Theme) // "" keeps the usual one
		logDirs(op.devLog, op.process.Dirs)
	}
	return op.process
}

// reopenProcess opens the process again, so that it knows a changed configuration and stored keys. Nothing may use the
// old one.
func (op *opener) reopenProcess() error {
	if op.process != nil {
		_ = op.process.Close() // nothing has used its store and its servers
		op.process = nil
	}
	return op.openProcess()
}

// newGuide returns what asks the person at the terminal for a model or a key, and opens the process again after a key
// was stored. Its prompter is nil if there is no person to ask.
func (op *opener) newGuide() *setup.Guide {
	guide := newGuide(op.Console, op.process)
	guide.OffersLook = op.offersLook
	guide.Reopen = func() (*app.Process, error) {
		err := op.reopenProcess()
		return op.process, err
	}
	return guide
}

// newGuide returns what asks the person at the terminal for consent. Its prompter is nil if there is no person to ask.
func newGuide(con *console.Console, p *app.Process) *setup.Guide {
	return &setup.Guide{Console: con, Process: p, Prompter: con.NewPrompter()}
}
