// Command raddle-temporal drives raddle's runs on many machines with Temporal.
//
// Runs are in the store that the configuration of raddle names, so raddle's own commands and its server show,
// answer and continue them too. The settings of the connection are those of Temporal's own programs: their file
// and their variables, such as TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE and TEMPORAL_API_KEY.
//
//	raddle-temporal worker --queue default
//	raddle-temporal run AGENT [PROMPT...]
//	raddle-temporal resume RUN [--answer TEXT]
//	raddle-temporal cancel RUN
//	raddle-temporal ls
//
// The exit codes are those of raddle: 0, 1 for other failures, 2 for bad usage, 3 for an invalid agent or
// configuration, and 8 for a run that cannot be continued as it is.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/envconfig"
	"go.temporal.io/sdk/log"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
)

func main() {
	e := &environment{out: os.Stdout, err: os.Stderr}
	if err := newRootCommand(e).ExecuteContext(context.Background()); err != nil {
		os.Exit(e.report(err))
	}
}

// An environment is what the commands share.
type environment struct {
	out, err io.Writer
	process  *app.Process

	address, namespace string // flags; "": as Temporal's settings say
}

func newRootCommand(e *environment) *cobra.Command {
	root := &cobra.Command{
		Use:           "raddle-temporal",
		Short:         "Drive runs of raddle on many machines with Temporal",
		Version:       app.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(e.out)
	root.SetErr(e.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return failure.NewUsage("", "%v", err) })
	flags := root.PersistentFlags()
	flags.StringVar(&e.address, "address", "", "the server of Temporal: `HOST:PORT` (default: TEMPORAL_ADDRESS, or localhost:7233)")
	flags.StringVar(&e.namespace, "namespace", "", "the `NAME` of the namespace (default: TEMPORAL_NAMESPACE, or default)")
	root.AddCommand(newWorkerCommand(e), newRunCommand(e), newResumeCommand(e), newCancelCommand(e), newListCommand(e))
	return root
}

// openProcess opens what the configuration of raddle says. Its store must be one that other processes can open.
func (e *environment) openProcess() error {
	if e.process != nil {
		return nil
	}
	p, err := app.Open(app.Options{Log: e.logger()})
	if err != nil {
		return err
	}
	if !p.Runs.KeepsRuns() {
		return failure.NewInvalid("set store: to the URL of a database, such as postgres://…", "the store %s is only in this process: workers cannot see its runs", p.Runs.StoreURL())
	}
	e.process = p
	return nil
}

// dial connects to the server of Temporal.
func (e *environment) dial(ctx context.Context) (client.Client, error) {
	o, err := envconfig.LoadDefaultClientOptions()
	if err != nil {
		return nil, failure.NewInvalid("", "the settings of Temporal: %v", err)
	}
	if e.address != "" {
		o.HostPort = e.address
	}
	if e.namespace != "" {
		o.Namespace = e.namespace
	}
	o.Logger = log.NewStructuredLogger(e.logger())
	c, err := client.DialContext(ctx, o)
	if err != nil {
		where := o.HostPort
		if where == "" {
			where = client.DefaultHostPort
		}
		return nil, &connectError{where, err}
	}
	return c, nil
}

// connectError says that the server of Temporal cannot be reached.
type connectError struct {
	where string
	err   error
}

func (e *connectError) Error() string {
	return fmt.Sprintf("the server of Temporal at %s cannot be reached: %v", e.where, e.err)
}

// Unwrap returns the cause.
func (e *connectError) Unwrap() error { return e.err }

// logger returns the log of the program: warnings and errors, without secrets.
func (e *environment) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(e.err, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		switch v := a.Value.Any().(type) {
		case string:
			return slog.String(a.Key, e.clean(v))
		case error:
			return slog.String(a.Key, e.clean(v.Error()))
		}
		return a
	}}))
}

// clean returns a text without secrets and control characters.
func (e *environment) clean(text string) string {
	if e.process != nil {
		text = e.process.Tools.SecretSet().Text(text)
	}
	return term.CleanText(text)
}

// note prints a line for people.
func (e *environment) note(format string, args ...any) {
	_, _ = fmt.Fprintln(e.err, e.clean(fmt.Sprintf(format, args...)))
}

// report prints an error and what to do about it, and returns the exit code.
func (e *environment) report(err error) int {
	e.note("raddle-temporal: %v", err)
	ours, ok := errors.AsType[*failure.Error](err)
	if ok && ours.Next != "" {
		e.note("%s", ours.Next)
	}
	if missing, ok := errors.AsType[*serviceerror.NamespaceNotFound](err); ok {
		e.note("create it: temporal operator namespace create %s", missing.Namespace)
	}
	if !ok {
		return 1
	}
	return map[failure.Kind]int{failure.Usage: 2, failure.Invalid: 3, failure.Stale: 8}[ours.Kind]
}
