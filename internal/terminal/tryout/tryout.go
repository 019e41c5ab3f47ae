// Package tryout prepares what raddle try shows: an agent that repairs a failing test, which a person kills on the way
// and continues. Its model is a transcript, and its tools work for real, in a directory in the cache.
package tryout

import (
	"context"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/internal/terminal/console"
)

//go:embed files
var files embed.FS

const top = "files"

// The agent, and what it is asked.
const (
	Agent  = "try-repair"
	Prompt = "The test fails. Repair it."
)

// recent is how many of the newest runs may be the one that was killed.
const recent = 20

// FindDir returns the directory in which the agent works.
func FindDir(dirs config.Dirs) string { return filepath.Join(dirs.Cache, "try") }

// WriteFiles writes the agent, the program with its fault, and its test into a directory, as they are at the beginning.
func WriteFiles(dir string) error {
	return fs.WalkDir(files, top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(path, top)))
		if d.IsDir() {
			return os.MkdirAll(to, 0o700)
		}
		text, err := files.ReadFile(path)
		if err != nil {
			return err
		}
		return config.WritePrivate(to, text)
	})
}

// FindStopped returns the newest run of the agent if it was killed or stopped, and its files are in dir; "": there is
// none. The error says that another process drives it, or that the store keeps no runs.
func FindStopped(ctx context.Context, archive *runs.Archive, dir string) (run string, err error) {
	if !archive.KeepsRuns() {
		return "", failure.NewUsage("unset RADDLE_STORE, or name one that keeps them", "raddle try continues a run that was killed, and the store %s keeps none", archive.StoreURL())
	}
	newest, err := archive.ListNewest(ctx, "", recent)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(newest, func(r runs.Info) bool { return r.Agent == Agent })
	switch {
	case i < 0 || newest[i].Final || !config.IsDir(filepath.Join(dir, Agent)):
		return "", nil
	case newest[i].Status == runs.Running:
		run = newest[i].Run
		return "", failure.NewStale("answer it there, or end it: raddle runs cancel "+run, "another process works on run %s of raddle try", run)
	}
	return newest[i].Run, nil
}

// SayBefore says what is about to happen, in lines for 80 columns. process is the id of this process.
func SayBefore(con *console.Console, dir string, process int) {
	con.PrintNote("an agent repairs a failing test in %s", dir)
	con.PrintNote("its model is recorded; its tools work for real, and ask you: 1 allows a call")
	con.PrintNote("after the change it thinks for 10 seconds: kill it then (Ctrl-C, kill -9 %d)", process)
	con.PrintNote("and continue it: raddle try")
}

// SayContinues says that a run continues which was stopped.
func SayContinues(con *console.Console, run string) {
	con.PrintNote("run %s was stopped, and continues", run)
	con.PrintNote("what its journal has is neither asked nor done again")
}

// SayAfter says what to look at when the run is done.
func SayAfter(con *console.Console) {
	con.PrintNote("next: raddle runs history last shows each step that was recorded")
	con.PrintNote("raddle try begins again; raddle init chooses a model of your own")
}
