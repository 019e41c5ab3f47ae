package script

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/tool"
)

// cleanText is text as a model may read it: without escapes, and valid UTF-8.
func cleanText(text []byte) string {
	return strings.ToValidUTF8(string(proc.StripEscapes(text)), "\uFFFD")
}

// successResult returns the result of a call that went well: the JSON value that it wrote,
// else its text.
func successResult(output string) tool.Result {
	switch {
	case output == "" || output == "null":
		return tool.Result{}
	case json.Valid([]byte(output)):
		return tool.JSONResult(json.RawMessage(output))
	}
	return tool.TextResult(output)
}

// failureResult returns the result of a call that went wrong, with all that it has written.
func failureResult(what string, res proc.Result, output string) tool.Result {
	object := failureBody{
		What:   what,
		Stderr: strings.TrimSpace(cleanText(res.Stderr)),
		Stdout: strings.TrimSpace(cleanText(res.Stdout)),
		Output: strings.TrimSpace(output),
	}
	r := tool.JSONResult(object)
	r.Error = true
	return r
}

// failureBody is the shape of a failure; the order of the keys is part of it.
type failureBody struct {
	What   string `json:"tool_call_error"`
	Stderr string `json:"stderr,omitempty"`
	Stdout string `json:"stdout,omitempty"`
	Output string `json:"output,omitempty"`
}

// readOutput is what a tool has written to its output file, at most limit bytes
// of it: where there is more, its beginning and its end. A tool that has removed
// the file, or put something else in its place, has written nothing.
func readOutput(path string, limit int) string {
	f, err := plainfile.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	size := info.Size()
	if size <= int64(limit) {
		text, err := io.ReadAll(io.LimitReader(f, int64(limit)))
		if err != nil {
			return ""
		}
		return cleanText(text)
	}
	head := make([]byte, limit/2)
	tail := make([]byte, limit-limit/2)
	n, err1 := f.ReadAt(head, 0)
	m, err2 := f.ReadAt(tail, size-int64(len(tail)))
	if err := errors.Join(err1, err2); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	head = wholeHead(head[:n])
	tail = wholeTail(tail[:m])
	left := size - int64(len(head)) - int64(len(tail))
	return cleanText(head) + fmt.Sprintf("\n[... %d bytes left out ...]\n", left) + cleanText(tail)
}

// readJSON returns a result that is JSON and longer than limit, shortened to a JSON value
// of that length.
func readJSON(path string, limit int) (tool.Result, bool) {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= int64(limit) {
		return tool.Result{}, false
	}
	text, err := plainfile.Read(path, largestJSON)
	if err != nil {
		return tool.Result{}, false
	}
	return shortenJSON([]byte(cleanText(text)), limit)
}

// wholeHead drops a character that is cut off at the end.
func wholeHead(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if c := text[len(text)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(text[len(text)-n:]) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}

// wholeTail drops the rest of a character that is cut off at the beginning.
func wholeTail(text []byte) []byte {
	for n := 0; n < utf8.UTFMax-1 && n < len(text); n++ {
		if utf8.RuneStart(text[n]) {
			return text[n:]
		}
	}
	return text
}
