// Package chaosview is raddle chaos on a terminal: its flags, the lines about faults as they happen, and its result.
package chaosview

import (
	"context"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/chaos"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// Options are the flags of the command. The zero value is not usable: [Describe] sets the defaults.
type Options struct {
	chaos.Command
	Output  string // the format of the result
	minutes float64
}

// Describe returns the command with its flags, without --output and without what it does.
func Describe(opts *Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "chaos AGENT [PROMPT]...",
		Short: "Kill and freeze servers that run an agent, and count what is lost",
		Long: `Starts servers of its own, lets them work on runs of an agent, and kills, freezes and restarts them meanwhile; those of
PostgreSQL and Redis are cut off from it, too. Then it says what is lost, repeated, stranded, failed and in doubt. A test
case answers for models and tools; real ones need --live. The store is a file of its own. In another one, which --store
names, only the runs that the command has started are looked at and deleted. See: raddle help testing
The exit code is 1 if anything is lost, repeated, stranded or failed.`,
		Example: `  raddle examples copy triage
  raddle chaos examples/triage --minutes 0.05
  raddle chaos examples/triage --minutes 0.05 --servers 3 --seed 7`,
	}
	flags := cmd.Flags()
	flags.Float64Var(&opts.minutes, "minutes", 1, "hurt the servers for `N` minutes (default 1)")
	flags.IntVar(&opts.Runs, "runs", 0, "start at most `N` runs (default as many as there is time for)")
	flags.IntVar(&opts.Servers, "servers", 2, "start `N` servers (default 2)")
	flags.StringVar(&opts.Store, "store", "", "let the servers use the store `URL` (default a file of its own)")
	flags.Uint64Var(&opts.Seed, "seed", 0, "make the plan of faults from the number `N` (default another one each time)")
	flags.StringVar(&opts.Case, "case", "", "let the test case `NAME` answer (default the first one that can be repeated)")
	flags.StringVarP(&opts.Model, "model", "m", "", "replace every model by `script:FILE`")
	flags.BoolVar(&opts.Live, "live", false, "call the real models and tools, and pay for them")
	flags.BoolVar(&opts.Keep, "keep", false, "keep the runs, also if all is well")
	return cmd
}

// Run carries the command out. The error says how it ends.
func (o Options) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) (err error) {
	c := o.Command
	c.Process = p
	c.Environ = os.Environ()
	c.Agent = args[0]
	c.Prompt = strings.Join(args[1:], " ")
	c.Length = time.Duration(o.minutes * float64(time.Minute))
	if err := c.Check(); err != nil {
		return err
	}
	for c.Seed == 0 {
		c.Seed = rand.Uint64N(1_000_000)
	}
	if c.Program, err = os.Executable(); err != nil {
		return err
	}
	var mu sync.Mutex
	c.Say = func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		con.PrintNote(format, args...)
	}
	r, err := c.Execute(ctx)
	switch {
	case ctx.Err() != nil:
		return ending.Silent{Code: ending.Interrupted}
	case err != nil:
		return err
	}
	if err := con.PrintResult(o.Output, r, r.Text); err != nil || r.IsClean() {
		return err
	}
	return ending.Silent{Code: ending.Failed}
}
