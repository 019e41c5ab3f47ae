package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"raddle.dev/graph"
)

const (
	otherOption  = "Other (custom)"
	otherPrompt  = "Custom response:"
	answerPrompt = "Your answer: "
)

// dumb tells whether the terminal can do no more than print lines.
func dumb() bool {
	t := os.Getenv("TERM")
	return t == "dumb" || t == ""
}

// linePrompter asks with plain lines: options are numbered.
type linePrompter struct{ sh *shell }

func (p *linePrompter) ask(ctx context.Context, q graph.Question) (string, error) {
	p.say("%s\n", q.Prompt)
	if len(q.Options) == 0 {
		p.say("%s", answerPrompt)
		return p.line(ctx)
	}
	for i, o := range q.Options {
		p.say("  %d) %s\n", i+1, o)
	}
	last := len(q.Options)
	if q.Free {
		last++
		p.say("  %d) %s\n", last, otherOption)
	}
	for {
		p.say("Number [1-%d]: ", last)
		s, err := p.line(ctx)
		if err != nil {
			return "", err
		}
		s = strings.TrimSpace(s)
		for _, o := range q.Options {
			if s == o {
				return o, nil
			}
		}
		switch n, err := strconv.Atoi(s); {
		case err != nil || n < 1 || n > last:
			p.say("There is no option %q.\n", s)
		case n <= len(q.Options):
			return q.Options[n-1], nil
		default:
			p.say("%s ", otherPrompt)
			return p.line(ctx)
		}
	}
}

func (p *linePrompter) say(format string, args ...any) {
	_, _ = fmt.Fprintf(p.sh.err, format, args...)
}

// line reads one line, byte by byte: what follows belongs to the next question.
// The end of the input leaves the question open. When ctx ends, the read that is
// under way is left behind; the process ends soon.
func (p *linePrompter) line(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readLine(p.sh.in)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		p.say("\n")
		return "", ctx.Err()
	case r := <-done:
		if r.err == io.EOF {
			p.say("\n")
			return "", errParked
		}
		return r.text, r.err
	}
}

func readLine(r io.Reader) (string, error) {
	var line []byte
	b := make([]byte, 1)
	for {
		n, err := r.Read(b)
		switch {
		case n == 1 && b[0] == '\n':
			return strings.TrimSuffix(string(line), "\r"), nil
		case n == 1:
			line = append(line, b[0])
		case err == io.EOF && len(line) > 0:
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
	}
}
