package toolbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/tool/script"
)

// BuildRunners writes a runner for each script of a list of tools: a program that calls its
// functions as commands. Runners that were built before are replaced. It returns their paths. The scripts stay as
// they are.
func (l *ToolList) BuildRunners() (paths []string, err error) {
	dir := filepath.Join(l.shared.Dirs.Cache, "bin", "functions")
	if l.dir != "" {
		dir = filepath.Join(l.shared.Dirs.Cache, "bin", "agents", filepath.Base(l.dir))
	}
	program, err := findProgram()
	if err != nil {
		return nil, fmt.Errorf("build the tools: %w", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, fmt.Errorf("build the tools: %w", err)
	}
	if len(l.Files) == 0 {
		return nil, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("build the tools: %w", err)
	}
	for _, file := range l.Files {
		name, text := formatRunner(runtime.GOOS, program, l.dir, file)
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			return paths, fmt.Errorf("build the tools: %w", err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// findProgram returns the path by which this program was started: one that stays when a new version replaces
// the file behind a link.
func findProgram() (string, error) {
	path, err := exec.LookPath(os.Args[0])
	if err != nil {
		return os.Executable()
	}
	return filepath.Abs(path)
}

// formatRunner returns the name and the text of the runner of a script. agentDir is empty for a tool of no agent.
func formatRunner(goos, program, agentDir, file string) (name, text string) {
	if goos == "windows" {
		return filepath.Base(file) + ".cmd", fmt.Sprintf("@rem Runs the tools of %s. Written by: raddle tools build\r\n@\"%s\" tools exec -- \"%s\" \"%s\" %%*\r\n",
			filepath.Base(file), program, agentDir, file)
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	return filepath.Base(file), fmt.Sprintf(`#!/bin/sh
# Runs the tools of a script as commands. Written by: raddle tools build
raddle=%s
[ -x "$raddle" ] || raddle=raddle
exec "$raddle" tools exec -- %s %s "$@"
`, quote(program), quote(agentDir), quote(file))
}

// runWords returns what runs a function of a script as a command.
func runWords(h *script.Host, agentDir string) func(context.Context, string, []string, io.Writer, io.Writer) (int, error) {
	return func(ctx context.Context, file string, words []string, stdout, stderr io.Writer) (int, error) {
		in := *h
		own := file == ownFile(agentDir)
		if !own && filepath.Dir(filepath.Dir(file)) == agentDir {
			in.Functions = agentDir
		}
		return in.RunWords(ctx, file, own, words, stdout, stderr)
	}
}

// ExecTool runs a function of one of the scripts of a list of tools as a command, at the user's request: it checks
// no permissions. What it writes has no secrets that the process knows. It returns the exit code.
func (l *ToolList) ExecTool(ctx context.Context, file string, words []string, stdout, stderr io.Writer) (int, error) {
	if err := l.shared.Dirs.RequireWork(); err != nil {
		return 0, err
	}
	for _, known := range l.Files {
		if known == file {
			code, err := l.set.RunWords(ctx, file, words, stdout, stderr)
			if wrong, ok := errors.AsType[*script.UsageError](err); ok {
				return code, &failure.Error{
					Kind: failure.Usage,
					Err:  wrong,
					Next: "call it like this:\n" + strings.TrimSpace(wrong.Help),
				}
			}
			return code, err
		}
	}
	return 0, failure.NewUsage("build the tools again: raddle tools build", "%s is no longer a script of these tools", l.shared.Dirs.ShortPath(file))
}
