package builtin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"raddle.dev/tool"
)

const (
	readLines = 2000     // lines that fs_read returns if the call sets no limit
	lineRunes = 2000     // characters of a line
	largeFile = 50 << 10 // bytes from which on a file is called large
)

func readPath(ctx context.Context, h Host, a arguments) (tool.Result, error) {
	path := h.resolvePath(a["path"])
	info, err := os.Stat(path)
	if err != nil {
		return fileError(a["path"], err)
	}
	if info.IsDir() {
		return listEntries(h, a["path"])
	}
	stamp := stampFile(path)
	text, err := readFile(path)
	if err != nil {
		return fileError(a["path"], err)
	}
	seen := []tool.SeenFile{newSeen(path, string(text), stamp)}
	if bytes.IndexByte(text, 0) >= 0 {
		r := tool.FailedResult("%s is not a text: it has %d bytes, some of them zero", a["path"], len(text))
		r.Seen = seen
		return r, nil
	}
	offset := max(a.intValue("offset", 1), 1)
	limit := a.intValue("limit", readLines)
	if limit <= 0 {
		limit = readLines
	}
	r := tool.TextResult(h.clipOutput(numberLines(string(text), offset, limit)))
	r.Seen = seen
	return r, nil
}

// numberLines returns at most limit lines of a text with their numbers, from line offset on.
func numberLines(text string, offset, limit int) string {
	var lines []string
	if text != "" {
		lines = strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	}
	var b strings.Builder
	if len(text) > largeFile && len(lines) > limit {
		fmt.Fprintf(&b, "Warning: the file is large (%d bytes). Read it in parts.\n", len(text))
	}
	if offset > len(lines) {
		fmt.Fprintf(&b, "There is no line %d: the file has %d lines.\n", offset, len(lines))
		return b.String()
	}
	end := min(offset-1+limit, len(lines))
	for i := offset - 1; i < end; i++ {
		line, cut := firstRunes(lines[i], lineRunes)
		if cut {
			line += "... (truncated)"
		}
		fmt.Fprintf(&b, "%d: %s\n", i+1, line)
	}
	if end < len(lines) {
		fmt.Fprintf(&b, "(%d total lines. Use --offset %d to read more.)\n", len(lines), end+1)
	}
	return b.String()
}

// listEntries lists a directory, with a / after the names of directories.
func listEntries(h Host, path string) (tool.Result, error) {
	entries, err := os.ReadDir(h.resolvePath(path))
	if err != nil {
		return fileError(path, err)
	}
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Name())
		if e.IsDir() {
			b.WriteByte('/')
		}
		b.WriteByte('\n')
	}
	return tool.TextResult(h.clipOutput(b.String())), nil
}
