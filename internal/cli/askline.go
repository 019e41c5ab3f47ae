package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"raddle.dev/agent"
	"raddle.dev/graph"
)

const (
	otherOption  = "Other (custom)"
	otherPrompt  = "Custom response:"
	answerPrompt = "Your answer: "
)

// isDumbTerminal reports whether the terminal can only print lines.
func isDumbTerminal() bool {
	t := os.Getenv("TERM")
	return t == "dumb" || t == ""
}

// A linePrompter asks with plain lines: options are numbered.
type linePrompter struct{ env *environment }

func (p *linePrompter) askQuestion(ctx context.Context, q graph.Question) (any, error) {
	p.printText("%s\n", promptOf(q, false))
	options := optionsOf(q)
	for i, o := range options {
		p.printText("  %d) %s\n", i+1, o.label)
	}
	if err := p.discardTyped(ctx); err != nil {
		return nil, err
	}
	if len(options) == 0 {
		return p.readText(ctx, answerPrompt)
	}
	if q.Kind == agent.KindCheckbox {
		return p.chooseSeveral(ctx, options)
	}
	return p.chooseOne(ctx, q, options)
}

// chooseOne reads the number of an option, or a text of the person.
func (p *linePrompter) chooseOne(ctx context.Context, q graph.Question, options []option) (any, error) {
	for {
		s, err := p.readText(ctx, fmt.Sprintf("Number [1-%d]: ", len(options)))
		if err != nil {
			return "", err
		}
		s = strings.TrimSpace(s)
		if s == "" && q.Kind == kindConfirm {
			s = options[defaultOption(q, options)].value
		}
		i := findOption(s, options)
		switch {
		case i < 0:
			p.printText("There is no option %q.\n", s)
		case options[i].ask == "":
			return options[i].value, nil
		default:
			text, err := p.readText(ctx, options[i].ask)
			return options[i].value + text, err
		}
	}
}

// chooseSeveral reads the numbers of any number of options.
func (p *linePrompter) chooseSeveral(ctx context.Context, options []option) (any, error) {
next:
	for {
		s, err := p.readText(ctx, fmt.Sprintf("Numbers [1-%d], or nothing for none of them: ", len(options)))
		if err != nil {
			return nil, err
		}
		chosen := []string{}
		for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
			i := findOption(word, options)
			if i < 0 {
				p.printText("There is no option %q.\n", word)
				continue next
			}
			chosen = append(chosen, options[i].value)
		}
		return chosen, nil
	}
}

// findOption returns the index of an option by its number or its own words, or -1.
func findOption(s string, options []option) int {
	if i := slices.IndexFunc(options, func(o option) bool { return o.ask == "" && o.value == s }); i >= 0 {
		return i
	}
	if n, err := strconv.Atoi(s); err == nil && n >= 1 && n <= len(options) {
		return n - 1
	}
	return -1
}

// askText asks for a text.
func (p *linePrompter) askText(ctx context.Context, prompt string) (string, error) {
	if err := p.discardTyped(ctx); err != nil {
		return "", err
	}
	return p.readText(ctx, prompt)
}

// editText asks for a text again: a line cannot be edited.
func (p *linePrompter) editText(ctx context.Context, prompt, _ string) (string, error) {
	return p.readText(ctx, prompt)
}

// discardTyped removes what was typed before a question was shown.
func (p *linePrompter) discardTyped(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(graceTime):
	}
	p.env.keys.DiscardInput()
	return nil
}

// readText reads a text after a prompt.
func (p *linePrompter) readText(ctx context.Context, prompt string) (string, error) {
	defer p.env.keys.LendTerminal(true)()
	p.printText("%s", prompt)
	return p.readLineContext(ctx)
}

func (p *linePrompter) printText(format string, args ...any) {
	_, _ = fmt.Fprintf(p.env.err, format, args...)
}

// readLineContext reads one line, byte by byte: what follows belongs to the next question.
// The end of the input leaves the question open. When ctx ends, line abandons the
// current read; the process ends soon.
func (p *linePrompter) readLineContext(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readLine(p.env.in)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		p.printText("\n")
		return "", ctx.Err()
	case r := <-done:
		if r.err == io.EOF {
			p.printText("\n")
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
