package cli

import (
	"log/slog"
	"os"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

// logVariable is the variable that sets the level of the developer log where no flag does.
const logVariable = "RADDLE_LOG"

// logLevelNames are the levels of the developer log, from most to fewest records.
// logLevels has their values.
var (
	logLevelNames = []string{"trace", "debug", "info", "warn", "error"}
	logLevels     = []slog.Level{flow.LevelTrace, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
)

// openDevLog opens the developer log if --log-level or the variable asks for it. given
// reports whether the flag was set.
func (op *opener) openDevLog(given bool) error {
	from := "--log-level"
	name := op.logLevel
	if !given {
		if from, name = logVariable, os.Getenv(logVariable); name == "" {
			return nil
		}
	}
	at := slices.Index(logLevelNames, name)
	if at < 0 {
		next := "use one of " + strings.Join(logLevelNames, ", ")
		if near := wording.FindNearest(name, logLevelNames); near != "" {
			next = "did you mean " + near + "? The levels are " + strings.Join(logLevelNames, ", ")
		}
		return ending.BadUsage(next, "%s: there is no level %q", from, name)
	}
	op.devLog = slog.New(slog.NewTextHandler(op.Screen, &slog.HandlerOptions{
		Level:       logLevels[at],
		ReplaceAttr: op.cleanAttr,
	}))
	return nil
}

// cleanAttr names the level of a record, and removes secrets from texts before the handler
// quotes them.
func (op *opener) cleanAttr(groups []string, a slog.Attr) slog.Attr {
	switch v := a.Value.Any().(type) {
	case slog.Level:
		if len(groups) == 0 && a.Key == slog.LevelKey {
			return slog.String(a.Key, nameLevel(v))
		}
	case string:
		return slog.String(a.Key, string(op.redactBytes([]byte(v))))
	case error:
		return slog.String(a.Key, string(op.redactBytes([]byte(v.Error()))))
	}
	return a
}

func nameLevel(l slog.Level) string {
	if l == flow.LevelTrace {
		return "TRACE"
	}
	return l.String()
}

// logDirs records where the process finds its files. log may be nil.
func logDirs(log *slog.Logger, d config.Dirs) {
	if log != nil {
		log.Debug("raddle started", "version", app.Version(), "config", d.Config, "functions", d.Functions, "state", d.State, "cache", d.Cache, "work", d.Work)
	}
}

// runLogger returns the logger of a run: the developer log if there is one, else the lines that -v
// prints, else nil.
func runLogger(con *console.Console, p *app.Process) *slog.Logger {
	switch {
	case p.Log != nil:
		return p.Log
	case con.Verbose && !con.ShowsBlocks():
		return con.NewLog()
	}
	return nil
}
