package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/config"
	"raddle.dev/internal/failure"
	"raddle.dev/internal/plainfile"
	"raddle.dev/internal/term"
	"raddle.dev/internal/wording"
)

// attachment matches @PATH at the start of a word. A path with spaces is in quotes.
var attachment = regexp.MustCompile(`(^|\s)@("[^"\n]+"|[^\s"@]+)`)

// maxAttached is the largest size of a file that is attached, in bytes.
const maxAttached = 1 << 20

// newMessage returns a message with the files that it names after an @. A word with an @ that names no file stays as it is.
func newMessage(dirs config.Dirs, typed string) (message, error) {
	m := message{text: typed, shown: typed}
	seen := map[string]bool{}
	for _, found := range attachment.FindAllStringSubmatch(typed, -1) {
		path := strings.Trim(found[2], `"`)
		if !seen[path] && !isFile(dirs.AbsPath(path)) {
			path = strings.TrimRight(path, ".,;:!?)")
		}
		if seen[path] || !isFile(dirs.AbsPath(path)) {
			continue
		}
		seen[path] = true
		text, err := readAttachment(dirs, path)
		if err != nil {
			return m, err
		}
		m.text += "\n\n" + text
	}
	return m, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// readAttachment returns the text of a file with its name.
func readAttachment(dirs config.Dirs, path string) (string, error) {
	f, err := plainfile.Open(dirs.AbsPath(path))
	if err != nil {
		return "", failure.NewUsage("", "%v", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxAttached+1))
	switch {
	case err != nil:
		return "", failure.NewUsage("", "%v", err)
	case len(content) > maxAttached:
		return "", failure.NewUsage("name a part of it, or let the agent read it", "%s is larger than 1 MB", path)
	case !utf8.Valid(content):
		return "", failure.NewUsage("only text can be attached", "%s is not UTF-8 text", path)
	}
	return "File " + filepath.ToSlash(path) + ":\n" + strings.TrimRight(string(content), "\r\n"), nil
}

// attachFiles adds files to the next message.
func attachFiles(_ context.Context, s *Session, rest string) error {
	paths, prompt, both := strings.Cut(rest, " -- ") // the reference's form
	if strings.TrimSpace(paths) == "" {
		return failure.NewUsage("write: /file PATH", "/file: the path is missing")
	}
	for _, path := range splitPaths(paths) {
		text, err := readAttachment(s.Process.Dirs, path)
		if err != nil {
			return err
		}
		s.appended = append(s.appended, text)
		s.say("Your next message gets " + path + ".")
	}
	if both && s.edit != nil {
		s.edit.SetText(strings.TrimSpace(prompt))
	}
	return nil
}

// quotedPath matches a path. A path with spaces is in quotes.
var quotedPath = regexp.MustCompile(`"[^"]+"|[^\s"]+`)

// splitPaths returns the paths of a list.
func splitPaths(list string) []string {
	paths := quotedPath.FindAllString(list, -1)
	for i, path := range paths {
		paths[i] = strings.Trim(path, `"`)
	}
	return paths
}

// maxShellOutput is how much of the output of a shell command a message gets, in bytes.
const maxShellOutput = 64 << 10

// runShell runs a shell command of the person: !command shows its output, and !!command also adds it to the next message.
func runShell(ctx context.Context, s *Session, typed string) {
	line, keep := strings.CutPrefix(typed, "!!")
	if !keep {
		line = strings.TrimPrefix(typed, "!")
	}
	if line = strings.TrimSpace(line); line == "" {
		s.Backend.ShowError(failure.NewUsage("write: !COMMAND, or !!COMMAND to add its output to your next message", "there is no command"))
		return
	}
	if s.turn != nil {
		s.queue = append(s.queue, message{shown: typed, command: true})
		return
	}
	s.showMessage(typed)
	if s.edit != nil {
		s.leaveKeys()
		defer s.takeKeys()
	}
	cmd := exec.CommandContext(ctx, cmp.Or(os.Getenv("SHELL"), "sh"), "-c", line)
	cmd.Dir, cmd.Stdin = s.Process.Dirs.Work, s.In
	var kept strings.Builder
	cmd.Stdout, cmd.Stderr = s.Screen.File(), s.Screen.File() // the person's own command has the terminal
	if keep {
		cmd.Stdin = nil
		both := io.MultiWriter(s.Screen, &kept)
		cmd.Stdout, cmd.Stderr = both, both
	}
	ignored := term.IgnoreInterrupts() // Ctrl-C is for the command
	err := cmd.Run()
	ignored()
	end := ""
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		end = fmt.Sprintf("exit code %d", exit.ExitCode())
		if exit.ExitCode() < 0 {
			end = exit.String()
		}
		s.warn(end)
	} else if err != nil {
		s.Backend.ShowError(failure.NewUsage("", "%v", err))
		return
	}
	if keep {
		text := "Output of `" + line + "`:\n```\n" + strings.TrimRight(wording.CutText(term.CleanText(kept.String()), maxShellOutput, "\n[cut]"), "\n") + "\n```"
		if end != "" {
			text += "\n(" + end + ")"
		}
		s.appended = append(s.appended, text)
		s.say("Your next message gets this output.")
	}
}
