package chaos

import (
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/app"
)

// Command is what raddle chaos does. All fields but Case, Model, Prompt, Runs and Store must be set.
type Command struct {
	Program string       // the path of this program
	Environ []string     // of the servers; what they write is elsewhere
	Process *app.Process // finds the agent and the directories

	Agent   string // name or path
	Prompt  string // "": that of the case
	Case    string // the name of the test case that answers; "": the first that can be repeated
	Model   string // script:FILE, which replaces every model; "": none is replaced
	Live    bool   // models and tools are real
	Length  time.Duration
	Runs    int // at most so many are started; 0: as many as there is time for
	Servers int
	Store   string // URL; "": a file of its own
	Seed    uint64
	Keep    bool // the runs stay

	Say func(format string, args ...any) // writes a line about what happens; called by several goroutines at once
}

// Check returns an error if the options cannot be used.
func (c *Command) Check() error {
	switch {
	case c.Length <= 0 || c.Length > 24*time.Hour:
		return failure.NewUsage("use a number above 0, for example 0.5", "--minutes: %v is not a length of time from 0 to 24 hours", c.Length)
	case c.Servers < 1 || c.Servers > 20:
		return failure.NewUsage("use a number from 1 to 20", "--servers %d is not a number of servers", c.Servers)
	case c.Runs < 0:
		return failure.NewUsage("leave it out, or use a number above 0", "--runs %d is not a number of runs", c.Runs)
	case c.Model != "" && !strings.HasPrefix(c.Model, scriptModel):
		return failure.NewUsage("use --model script:FILE, or --live with the models of the agent", "--model %s would be called, and paid", c.Model)
	case c.Live && (c.Model != "" || c.Case != ""):
		return failure.NewUsage("leave out one of them", "--live cannot be combined with --model or --case")
	case c.Model != "" && c.Case != "":
		return failure.NewUsage("leave out one of them", "--model cannot be combined with --case")
	}
	return nil
}

// scriptModel is the beginning of models that are transcripts.
const scriptModel = "script:"
