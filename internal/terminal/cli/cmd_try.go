package cli

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/tryout"
	"raddle.dev/tool/permission"
)

func newTryCommand(env *environment) *cobra.Command {
	return &cobra.Command{
		Use:   "try",
		Short: "See an agent work, kill it, and continue it, without a key",
		Long: `An agent repairs a failing test, and asks you before it runs a command or changes a file. Kill it on the way: "raddle try"
continues it, and nothing that was recorded happens again. The model is recorded and needs no key; the tools work for
real, in a directory of their own in raddle's cache.`,
		Example: "  raddle try",
		Args:    checkArgCount(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return runTry(cmd.Context(), env) },
	}
}

// runTry starts the agent of package tryout, or continues it if it was stopped.
func runTry(ctx context.Context, env *environment) error {
	dirs, err := config.FindDirs(environ.New(os.Environ()), "")
	if err != nil {
		return err
	}
	env.work = tryout.FindDir(dirs)
	if err := os.MkdirAll(env.work, 0o700); err != nil {
		return err
	}
	if err := env.openProcess(); err != nil {
		return err
	}
	stopped, err := tryout.FindStopped(ctx, env.process.Runs, env.work)
	if err != nil {
		return err
	}
	if stopped != "" {
		tryout.SayContinues(env.Console, stopped)
		err = runResume(ctx, env, resumeOptions{output: console.FormatText, mode: string(permission.ModeAsk)}, []string{stopped})
	} else {
		if err := tryout.WriteFiles(env.work); err != nil {
			return err
		}
		tryout.SayBefore(env.Console, dirs.ShortPath(env.work), os.Getpid())
		opts := runOptions{output: console.FormatText, mode: string(permission.ModeAsk), noStdin: true}
		err = runRun(ctx, env, opts, []string{"./" + tryout.Agent, tryout.Prompt})
	}
	if err == nil {
		tryout.SayAfter(env.Console)
	}
	return err
}
