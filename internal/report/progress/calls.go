package progress

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/internal/base/pattern"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
)

// This file formats calls of tools.

// previewLines is how many lines of a result are shown.
const previewLines = 5

// mainArguments are the names of arguments that say what a call is about, the best first.
var mainArguments = []string{"command", "pattern", "path", "file_path", "file", "filename", "query", "url", "subject", "code", "prompt", "question", "name", "tool", "id", "message", "text"}

// mainArgument returns what a call is about, in the words of its arguments.
func mainArgument(args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil || len(fields) == 0 {
		return ""
	}
	for _, name := range mainArguments {
		if text, ok := fields[name].(string); ok && strings.TrimSpace(text) != "" {
			text := strings.TrimSpace(text)
			also := ""
			if path, ok := fields["path"].(string); ok && name == "pattern" && path != "" {
				also = "  " + path
			}
			return firstLine(text) + also
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch v := fields[name].(type) {
		case string:
			parts = append(parts, name+" "+firstLine(v))
		case float64, bool:
			parts = append(parts, fmt.Sprintf("%s %v", name, v))
		}
		if len(parts) == 2 {
			break
		}
	}
	return strings.Join(parts, ", ")
}

// firstLine returns the first line of a text, with three dots if there are more.
func firstLine(text string) string {
	first, rest, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if strings.TrimSpace(rest) != "" {
		return strings.TrimSpace(first) + " …"
	}
	return first
}

// isSilent reports whether a call has no lines of its own: it asks the person, or other lines say what it does.
func isSilent(name string, failed bool) bool {
	return strings.HasPrefix(name, "user__") || strings.HasPrefix(name, "agent__") && !failed
}

// changeTools change files. If one has changed nothing, the line of the call says so and its result is not shown.
var changeTools = []string{"apply_patch", "fs_edit", "fs_patch", "fs_write"}

// contentTools return what is in files or directories: the number of lines says enough.
var contentTools = []string{"fs_cat", "fs_read", "fs_ls", "fs_glob"}

// formatCall returns the lines of a call that has ended, painted: what it was about, how it ended, and what is worth
// reading of its result. With detail they have all of the result.
func (l Look) formatCall(label string, args json.RawMessage, v agent.ToolDone, cols int, detail bool) []string {
	r := readResult(v.Text)
	mark := l.colors.Paint(term.Cyan, l.call)
	name := term.CleanLine(v.Name)
	if v.Error {
		mark = l.colors.Paint(term.Red, l.failed)
	}
	head := mark + " "
	if label != "" {
		head += l.dim(term.CleanLine(label)) + "  "
	}
	head += l.colors.Paint(term.Bold, name)
	end := ""
	for _, c := range v.Changes {
		end += l.formatCounts(c)
	}
	lines := r.lines
	more := 0
	switch {
	case v.Error:
		lines = failureLines(r)
	case len(v.Changes) > 0 || strings.HasPrefix(v.Name, "todo__") && !detail:
		lines = nil
	case slices.Contains(contentTools, v.Name) && !detail:
		if len(lines) > 0 {
			end += "  " + wording.FormatCount(len(lines), "line")
		}
		lines = nil
	case slices.Contains(changeTools, v.Name):
		end += "  unchanged"
		lines = nil
	}
	took := ""
	if v.Took > 0 {
		took = "  " + l.dim(formatTook(v.Took))
		if v.Name == "execute_command" && !v.Error {
			took = "  " + l.Done() + " " + l.dim(formatTook(v.Took))
		}
	}
	if term.TextWidth(term.StripMarks(head+end+took)) <= cols {
		end += took
	}
	room := cols - term.TextWidth(term.StripMarks(head+end)) - 2
	if about := l.cut(mainArgument(args), room); about != "" && room > 3 {
		head += "  " + about
	}
	if !detail && len(lines) > previewLines {
		more = len(lines) - previewLines
		lines = lines[:previewLines]
	}
	block := []string{head + end}
	for _, line := range lines {
		if detail {
			block = append(block, l.dim("    "+term.CleanLine(line)))
			continue
		}
		block = append(block, l.dim("    "+l.cut(line, cols-4)))
	}
	if more > 0 {
		block = append(block, l.dim("    ("+wording.FormatCount(more, "more line")+")"))
	}
	for _, c := range v.Changes {
		block = append(block, l.formatDiff(c, cols, detail)...)
	}
	return block
}

// formatCounts returns how many lines a change has added and removed, after two blanks.
func (l Look) formatCounts(c tool.FileChange) string {
	if c.Withheld != "" {
		return "  " + string(c.Kind)
	}
	var parts []string
	if c.Added > 0 {
		parts = append(parts, l.colors.Paint(term.Green, fmt.Sprintf("+%d", c.Added)))
	}
	if c.Removed > 0 {
		parts = append(parts, l.colors.Paint(term.Red, fmt.Sprintf("%s%d", l.minus, c.Removed)))
	}
	if len(parts) == 0 {
		return ""
	}
	return "  " + strings.Join(parts, " ")
}

// A callResult is the result of a call in parts.
type callResult struct {
	lines   []string // of the output
	failure string
	stderr  []string
}

// readResult takes the text of a result apart: the objects that raddle's tools return, or any other text.
func readResult(text string) callResult {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil {
		var plain string
		if json.Unmarshal([]byte(text), &plain) == nil {
			text = plain
		}
		if text == "DONE" {
			return callResult{}
		}
		return callResult{lines: textLines(text)}
	}
	read := func(name string) (s string, ok bool) {
		raw, ok := fields[name]
		ok = ok && json.Unmarshal(raw, &s) == nil
		return s, ok
	}
	r := callResult{}
	r.failure, _ = read("tool_call_error")
	stderr, _ := read("stderr")
	output, isOutput := read("output")
	r.stderr, r.lines = textLines(stderr), textLines(output)
	if !isOutput && r.failure == "" && stderr == "" {
		r.lines = textLines(text)
	}
	if r.failure == "" && len(r.lines) == 0 {
		r.lines = r.stderr
	}
	return r
}

func textLines(text string) []string {
	text = strings.Trim(term.CleanText(text), "\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

var (
	framePattern   = pattern.CompileLater(`^\s*File "(?:[^"]*/)?([^"/]+)", line (\d+)`)
	unknownPattern = pattern.CompileLater(`^Unexpected call: (\S+) [\s\S]*use only tools listed in your catalog`)
	exitPattern    = pattern.CompileLater(`(exited with code \d+|was ended by \S+|timed out after .*)$`)
)

// failureLines returns the lines that say why a call failed: the last line of a trace with its place, else the end of
// what the call wrote, else the failure itself.
func failureLines(r callResult) []string {
	if len(r.stderr) > 0 {
		place := ""
		for _, line := range r.stderr {
			if m := framePattern().FindStringSubmatch(line); m != nil {
				place = "  (" + m[1] + ":" + m[2] + ")"
			}
		}
		last := strings.TrimSpace(r.stderr[len(r.stderr)-1])
		if place != "" {
			return []string{last + place}
		}
	}
	if wrote := slices.Concat(r.lines, r.stderr); r.failure != "" && len(wrote) > 0 {
		why := r.failure
		if m := exitPattern().FindString(why); m != "" {
			why = m
		}
		return append(wrote[max(0, len(wrote)-previewLines+1):], "("+why+")")
	}
	if m := unknownPattern().FindStringSubmatch(r.failure); m != nil {
		return []string{"There is no tool " + m[1] + " for this agent."}
	}
	if r.failure != "" {
		return []string{strings.ReplaceAll(r.failure, "\n", " ")}
	}
	return r.lines[max(0, len(r.lines)-1):]
}

// outputTail is how many lines of what a call writes are shown while it runs.
const outputTail = 5
