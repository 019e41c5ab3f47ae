package builtin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"raddle.dev/tool"
)

func patchFile(_ context.Context, h Host, a arguments) (tool.Result, error) {
	path := h.resolvePath(a["path"])
	text, err := readFile(path)
	if err != nil {
		return fileError(a["path"], err)
	}
	before := h.readImage(path, os.Stat)
	after, hunks, err := applyPatch(string(text), a["contents"])
	if err != nil {
		return tool.FailedResult("%s is unchanged: %v", a["path"], err), nil
	}
	if err := replaceFile(path, after); err != nil {
		return fileError(a["path"], err)
	}
	return before.addChange(tool.TextResult(fmt.Sprintf("Applied %d hunks to %s.", hunks, a["path"])), path, &after), nil
}

// Preview returns a unified diff of what a call of fs_write or fs_patch would change,
// for a person to see before it runs. It is empty for other tools, and where the
// call would change nothing or fail.
func Preview(h Host, c tool.Call, name string) string {
	i := slices.IndexFunc(fileTools, func(d definition) bool { return d.name == name })
	if i < 0 || name != "fs_write" && name != "fs_patch" {
		return ""
	}
	a, err := parseArguments(fileTools[i].params, c.Args)
	if err != nil {
		return ""
	}
	old, err := readFile(h.resolvePath(a["path"]))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return ""
	}
	text := a["contents"]
	if name == "fs_patch" {
		if text, _, err = applyPatch(string(old), text); err != nil {
			return ""
		}
	}
	return udiff.Unified(a["path"], a["path"], string(old), text)
}

// A hunk is one change: lines that are to be found, and what replaces them. Lines
// have their line breaks.
type hunk struct {
	at       int // of the patch, its line, counted from 1
	line     int // of the file, where the patch says it is, counted from 1; 0: it does not say
	old, new []string
}

// applyPatch returns the text with all hunks applied, and their number. The text
// keeps its line breaks, and the one at the end or its absence, unless the patch
// changes that line.
func applyPatch(text, patch string) (string, int, error) {
	hunks, err := parsePatch(patch)
	if err != nil {
		return "", 0, err
	}
	if strings.Contains(text, "\r\n") && !strings.Contains(patch, "\r\n") {
		for i := range hunks {
			convertToCRLF(hunks[i].old)
			convertToCRLF(hunks[i].new)
		}
	}
	lines := splitLines(text)
	var out strings.Builder
	at := 0 // lines before this are done
	for i, hk := range hunks {
		found := findHunk(lines, at, hk)
		if found < 0 {
			return "", 0, mismatchError(lines, at, i, hk)
		}
		for _, l := range lines[at:found] {
			out.WriteString(l)
		}
		at = found + len(hk.old)
		for j, l := range hk.new {
			// The last line of the file may have no line break, and then
			// neither has what the patch says of it.
			if at == len(lines) && j == len(hk.new)-1 && len(hk.old) > 0 && found < at && !strings.HasSuffix(lines[at-1], "\n") {
				l = strings.TrimSuffix(l, "\n")
			}
			out.WriteString(l)
		}
	}
	for _, l := range lines[at:] {
		out.WriteString(l)
	}
	return out.String(), len(hunks), nil
}

func splitLines(text string) []string {
	lines := strings.SplitAfter(text, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

func convertToCRLF(lines []string) {
	for i, l := range lines {
		if body, ok := strings.CutSuffix(l, "\n"); ok {
			lines[i] = body + "\r\n"
		}
	}
}

var hunkHead = regexp.MustCompile(`^@@+(?: -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@)?`)

// parsePatch reads the hunks of a unified diff. What stands before the first one
// is skipped, and so are the names of files between two.
func parsePatch(patch string) ([]hunk, error) {
	var hunks []hunk
	lines := splitLines(patch)
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if m := hunkHead.FindStringSubmatch(line); m != nil {
			n, _ := strconv.Atoi(m[1])
			hunks = append(hunks, hunk{at: i + 1, line: n})
			continue
		}
		if len(hunks) == 0 {
			continue
		}
		if strings.HasPrefix(line, "--- ") && i+2 < len(lines) && strings.HasPrefix(lines[i+1], "+++ ") && strings.HasPrefix(lines[i+2], "@@") {
			i++
			continue
		}
		if err := hunks[len(hunks)-1].addLine(line, i); err != nil {
			return nil, err
		}
	}
	if len(hunks) == 0 {
		return nil, errors.New("no patch: there is no line that begins with @@")
	}
	for _, hk := range hunks {
		if len(hk.old) == 0 && len(hk.new) == 0 {
			return nil, fmt.Errorf("the hunk in line %d of the patch has no lines", hk.at)
		}
	}
	return hunks, nil
}

// addLine takes one line of the patch.
func (hk *hunk) addLine(line string, i int) error {
	if !strings.HasSuffix(line, "\n") {
		line += "\n" // the end of the patch, not of the file
	}
	body := line[1:]
	switch line[0] {
	case ' ':
		hk.old, hk.new = append(hk.old, body), append(hk.new, body)
	case '-':
		hk.old = append(hk.old, body)
	case '+':
		hk.new = append(hk.new, body)
	case '\n', '\r': // an empty line whose space was lost
		hk.old, hk.new = append(hk.old, line), append(hk.new, line)
	case '\\': // the line before has no line break
	default:
		return fmt.Errorf("line %d of the patch begins with neither a space, - nor +: %.60q", i+1, line)
	}
	return nil
}

// findHunk returns the index of the first line of a hunk at or after a line: the match that is
// nearest to the line number in the patch, or the first if it has none. It returns -1 if there is
// none.
func findHunk(lines []string, from int, hk hunk) int {
	if len(hk.old) == 0 { // nothing to compare: the line of the patch, or the end
		if hk.line > 0 {
			return min(max(hk.line, from), len(lines))
		}
		return len(lines)
	}
	best := -1
	for i := from; i+len(hk.old) <= len(lines); i++ {
		if countMatching(lines[i:], hk.old) < len(hk.old) {
			continue
		}
		if best < 0 || hk.line > 0 && lineDistance(i, hk.line-1) < lineDistance(best, hk.line-1) {
			best = i
		}
		if hk.line == 0 {
			break
		}
	}
	return best
}

func lineDistance(a, b int) int { return max(a-b, b-a) }

// countMatching returns the number of equal lines at the beginning. The last line of a file need
// not have a line break.
func countMatching(lines, want []string) int {
	for i, w := range want {
		if i >= len(lines) || lines[i] != w && (i != len(lines)-1 || lines[i]+"\n" != w) {
			return i
		}
	}
	return len(want)
}

// mismatchError returns the reason why a hunk does not fit: where it fits best, and what differs
// there.
func mismatchError(lines []string, from, i int, hk hunk) error {
	best, most := -1, 0
	for at := from; at < len(lines); at++ {
		if n := countMatching(lines[at:], hk.old); n > most {
			best, most = at, n
		}
	}
	where := fmt.Sprintf("hunk %d (line %d of the patch) does not fit", i+1, hk.at)
	if best < 0 {
		first := strings.TrimSpace(hk.old[0])
		for at := from; at < len(lines); at++ {
			if first != "" && strings.TrimSpace(lines[at]) == first {
				return fmt.Errorf("%s: its first line is in the file only with other blanks: line %d is %q, the patch has %q", where, at+1, lines[at], hk.old[0])
			}
		}
		for at := range min(from, len(lines)) {
			if lines[at] == hk.old[0] {
				return fmt.Errorf("%s: its first line is in line %d, before the end of the hunk above: put the hunks in the order of the file", where, at+1)
			}
		}
		return fmt.Errorf("%s: its first line is not in the file: %q", where, hk.old[0])
	}
	has := "the end of the file"
	if best+most < len(lines) {
		has = strconv.Quote(lines[best+most])
	}
	return fmt.Errorf("%s: it agrees with the file from line %d on, but line %d is %s where the patch has %q",
		where, best+1, best+most+1, has, hk.old[most])
}
