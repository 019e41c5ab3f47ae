package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"raddle.dev/internal/term"
)

// firstByte is how long a run without a prompt waits for the first byte of standard
// input: a supervisor may leave it open without ever writing to it.
const firstByte = time.Second

// promptText returns the whole prompt of a run: the words of the command line, or
// standard input instead of "-" or of no words, and then the files.
func promptText(env *environment, words, files []string, noStdin bool) (string, error) {
	var text string
	var err error
	switch {
	case slices.Contains(words, "-"):
		if noStdin {
			return "", badUsage("leave one of them out", "the prompt \"-\" is standard input, and --no-stdin forbids reading it")
		}
		words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "-" })
		if text, err = readAll(env.in); err != nil {
			return "", err
		}
		text = joinNonEmpty("\n\n", strings.Join(words, " "), text)
	case len(words) > 0:
		text = strings.Join(words, " ")
	case !noStdin && !term.IsTerminal(env.in):
		if text, err = readSoon(env.in, firstByte); err != nil {
			return "", err
		}
	}
	return withFiles(env, text, files)
}

// withFiles adds the text of files to a prompt. If the prompt is only one file, it
// is the text of that file.
func withFiles(env *environment, text string, files []string) (string, error) {
	for _, path := range files {
		content, err := os.ReadFile(path)
		switch {
		case err != nil:
			return "", &exitError{code: exitUsage, err: fmt.Errorf("-f: %w", err)}
		case !utf8.Valid(content):
			return "", badUsage("only text can be put into a prompt", "-f: %s is not UTF-8 text", path)
		}
		body := trimEnd(string(content))
		if text != "" || len(files) > 1 {
			body = "File " + filepath.ToSlash(path) + ":\n" + body
		}
		text = joinNonEmpty("\n\n", text, body)
	}
	return text, nil
}

// joinNonEmpty joins the texts that are not empty.
func joinNonEmpty(sep string, texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return s == "" }), sep)
}

func trimEnd(s string) string { return strings.TrimRight(s, "\r\n") }

func readAll(r io.Reader) (string, error) {
	b, err := io.ReadAll(r)
	switch {
	case err != nil:
		return "", &exitError{code: exitUsage, err: fmt.Errorf("standard input: %w", err)}
	case !utf8.Valid(b):
		return "", badUsage("", "standard input is not UTF-8 text")
	}
	return trimEnd(string(b)), nil
}

// readSoon reads everything from r, or nothing if the first byte does not arrive in
// time. The goroutine that remains then waits until the process ends;
// nothing else reads from r.
func readSoon(r io.Reader, wait time.Duration) (string, error) {
	type first struct {
		b   []byte
		err error
	}
	began := make(chan first, 1)
	go func() {
		b := make([]byte, 1)
		n, err := r.Read(b)
		began <- first{b[:n], err}
	}()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return "", nil
	case f := <-began:
		if f.err != nil && f.err != io.EOF {
			return "", nil // it is closed, or cannot be read: there is no input
		}
		if f.err == io.EOF {
			return trimEnd(string(f.b)), nil
		}
		rest, err := io.ReadAll(r)
		if err != nil {
			return "", &exitError{code: exitUsage, err: fmt.Errorf("standard input: %w", err)}
		}
		return readAll(strings.NewReader(string(f.b) + string(rest)))
	}
}
