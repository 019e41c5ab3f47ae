package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// attachment matches @PATH at the start of a word. A path with spaces is in quotes.
var attachment = pattern.CompileLater(`(^|\s)@("[^"\n]+"|[^\s"@]+)`)

// newMessage returns a message with the files that it names after an @. A word with an @ that names no file stays as it
// is.
func newMessage(dirs config.Dirs, typed string) (message, error) {
	m := message{text: typed, shown: typed}
	seen := map[string]bool{}
	for _, found := range attachment().FindAllStringSubmatch(typed, -1) {
		path := strings.Trim(found[2], `"`)
		if !seen[path] && !isFile(dirs.AbsPath(path)) {
			path = strings.TrimRight(path, ".,;:!?)")
		}
		if seen[path] || !isFile(dirs.AbsPath(path)) {
			continue
		}
		seen[path] = true
		f, err := attach.Read(dirs.AbsPath(path), path, attach.MaxText, false)
		if err != nil {
			return m, err
		}
		m.text += "\n\n" + f.Mention()
		m.files = append(m.files, f)
	}
	return m, nil
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// attachFiles adds files to the next message, or sends one that follows them after " -- ".
func attachFiles(ctx context.Context, s *Session, rest string) error {
	paths, prompt, both := strings.Cut(rest, " -- ") // the reference's form
	if strings.TrimSpace(paths) == "" {
		return failure.NewUsage("write: /file PATH", "/file: the path is missing")
	}
	for _, path := range splitPaths(paths) {
		if line, ok := strings.CutPrefix(path, "`"); ok {
			if err := attachOutput(ctx, s, strings.TrimSuffix(line, "`")); err != nil {
				return err
			}
			continue
		}
		f, err := attach.Read(s.Process.Dirs.AbsPath(path), path, attach.MaxText, false)
		if err == nil {
			err = attachNext(s, f)
		}
		if err != nil {
			return err
		}
	}
	if prompt = strings.TrimSpace(prompt); both && prompt != "" {
		s.send(ctx, message{text: prompt, shown: prompt})
	}
	return nil
}

// attachments are what the next message gets.
type attachments struct {
	texts  []string      // before what the person writes
	files  []attach.File // pictures and documents
	pasted int           // how many pictures were taken from the clipboard
}

// attachNext adds a file to the next message.
func attachNext(s *Session, f attach.File) error {
	if err := attach.CheckMedia(mediaOf(append(slices.Clone(s.attached.files), f))); err != nil {
		return err
	}
	s.attached.texts = append(s.attached.texts, f.Mention())
	if f.Media != nil {
		s.attached.files = append(s.attached.files, f)
	}
	s.say("Your next message gets " + attach.Mark + f.String())
	return nil
}

// mediaOf returns the pictures and documents of files, each once.
func mediaOf(files []attach.File) (media []llm.Part) {
	for _, f := range files {
		if f.Media != nil && !slices.ContainsFunc(media, func(p llm.Part) bool { return reflect.DeepEqual(p, f.Media) }) {
			media = append(media, f.Media)
		}
	}
	return media
}

// pastedFile returns the path of a picture or a document if that is all that was pasted, as a terminal writes it for a
// file that was dropped on it.
func pastedFile(dirs config.Dirs, pasted string) (path string, ok bool) {
	path = strings.TrimSpace(pasted)
	if strings.ContainsAny(path, "\n\"") && !strings.HasPrefix(path, `"`) || len(path) > 4096 {
		return "", false
	}
	if rest, found := strings.CutPrefix(path, "file://"); found {
		u, err := url.Parse(path)
		if err != nil || u.Host != "" && u.Host != "localhost" || rest == "" {
			return "", false
		}
		path = u.Path
	} else if quote := path[:min(1, len(path))]; quote == "'" || quote == `"` {
		path = strings.Trim(path, quote)
	} else if runtime.GOOS != "windows" {
		path = strings.NewReplacer(`\\`, `\`, `\`, "").Replace(path)
	}
	if !attach.IsMediaName(path) || strings.Contains(path, `"`) || !isFile(dirs.AbsPath(path)) {
		return "", false
	}
	return path, true
}

// handlePaste handles a paste: the path of a picture or a document attaches it.
func handlePaste(s *Session, msg tea.PasteMsg) tea.PasteMsg {
	if path, ok := pastedFile(s.Process.Dirs, msg.Content); ok {
		if strings.ContainsFunc(path, unicode.IsSpace) {
			path = `"` + path + `"`
		}
		msg.Content = "@" + path + " "
		if before := s.edit.Text(); before != "" && !strings.HasSuffix(before, " ") && !strings.HasSuffix(before, "\n") {
			msg.Content = " " + msg.Content
		}
	}
	return msg
}

// quotedPath matches a path, or a command of the shell between backquotes. A path with spaces is in quotes.
var quotedPath = pattern.CompileLater("\"[^\"]+\"|`[^`]+`|[^\\s\"]+")

// splitPaths returns the paths of a list.
func splitPaths(list string) []string {
	paths := quotedPath().FindAllString(list, -1)
	for i, path := range paths {
		paths[i] = strings.Trim(path, `"`)
	}
	return paths
}

// maxShellOutput is how much of the output of a shell command a message gets, in bytes.
const maxShellOutput = 64 << 10

// runShell runs a shell command of the person: !command shows its output, and !!command also adds it to the next
// message.
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
	cmd.Dir = s.Process.Dirs.Work
	cmd.Stdin = s.In
	var kept strings.Builder
	cmd.Stdout, cmd.Stderr = s.Screen.File(), s.Screen.File() // the person's own command has the terminal
	if keep {
		cmd.Stdin = nil
		both := io.MultiWriter(s.Screen, &kept)
		cmd.Stdout = both
		cmd.Stderr = both
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
		text := outputOf(line, kept.String())
		if end != "" {
			text += "\n(" + end + ")"
		}
		s.attached.texts = append(s.attached.texts, text)
		s.say("Your next message gets this output.")
	}
}
