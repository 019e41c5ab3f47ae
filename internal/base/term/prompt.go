package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrLeftOpen reports that the person at the terminal leaves a question open.
var ErrLeftOpen = errors.New("the question was left open")

// ErrInterrupted is the [ErrLeftOpen] of a person who pressed Ctrl-C.
var ErrInterrupted = fmt.Errorf("%w: Ctrl-C was pressed", ErrLeftOpen)

// graceTime is how long a question ignores keys after it appeared: they were meant for what was on the screen before.
const graceTime = 500 * time.Millisecond

// A Choice is one of the answers that a person may choose from.
type Choice struct {
	Label string // for the person; must be clean
	Word  string // what the person may type instead of the number; "": only the number
	Step  bool   // it is not the answer yet: a form does not leave it on the screen
	Key   string // one character that chooses it instead of a number; "": its number does
}

// A Menu is what a person chooses from.
type Menu struct {
	Choices []Choice
	First   int  // index of the choice that a form marks at first: Enter alone chooses it
	Quick   bool // Enter alone chooses First also where choices are numbered

	Frame string // the character on the left of a form, which ends a box above it; "": the form is no part of a box
	Hint  string // follows the explanation of the keys; must be clean
	Leave string // what Esc does, in a word or two; "": what the prompter says
}

// A Prompter asks a person at a terminal. Its methods return [ErrLeftOpen] if the person leaves the
// question open, and the context's error if that ends. It is not safe for concurrent use.
type Prompter interface {
	// ShowQuestion shows a question, unless it is "", with the choices if they are not shown later. What was typed
	// until shortly afterwards answers nothing.
	ShowQuestion(ctx context.Context, question string, choices []Choice) error
	// ChooseOne returns the index of the choice.
	ChooseOne(ctx context.Context, m Menu) (int, error)
	// ChooseSeveral returns the indexes of any number of choices.
	ChooseSeveral(ctx context.Context, choices []Choice) ([]int, error)
	// ReadText returns a text. If the terminal can do that, the person edits text, which may have several lines;
	// otherwise it is one line.
	ReadText(ctx context.Context, prompt, text string) (string, error)
	// ReadSecret reads a line without showing it.
	ReadSecret(ctx context.Context, prompt string) (string, error)
}

// NewPrompter returns what asks the person at a terminal, or nil unless both the input and the screen are a
// terminal. leave says what Esc does, in a few words. The caller handles signals and ends the contexts.
func NewPrompter(in *os.File, screen *Screen, keys *Keyboard, leave string) Prompter {
	if plain := NewLinePrompter(in, screen, keys); plain == nil || IsDumb() {
		return plain
	}
	return &formPrompter{in: in, screen: screen, keys: keys, leave: leave}
}

// NewLinePrompter returns what asks with plain lines, for people who cannot use a cursor that moves, or nil as
// [NewPrompter] does.
func NewLinePrompter(in *os.File, screen *Screen, keys *Keyboard) Prompter {
	if !IsTerminal(in) || !screen.IsTerminal() {
		return nil
	}
	return &linePrompter{in: in, screen: screen, keys: keys}
}

// IsDumb reports whether the terminal can only print lines.
func IsDumb() bool {
	t := os.Getenv("TERM")
	return t == "dumb" || t == ""
}

// A linePrompter asks with plain lines: choices are numbered.
type linePrompter struct {
	in     *os.File
	screen *Screen
	keys   *Keyboard
}

func (p *linePrompter) ShowQuestion(ctx context.Context, question string, choices []Choice) error {
	if question != "" {
		p.printText("%s\n", question)
	}
	for i, key := range choiceKeys(choices) {
		p.printText("  %s) %s\n", key, choices[i].Label)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(graceTime):
	}
	p.keys.DiscardInput()
	return nil
}

func (p *linePrompter) ChooseOne(ctx context.Context, m Menu) (int, error) {
	for {
		s, err := p.ReadText(ctx, fmt.Sprintf("Number [%s]: ", describeNumbers(m.Choices)), "")
		if err != nil {
			return 0, err
		}
		s = strings.TrimSpace(s)
		if s == "" && m.Quick {
			return m.First, nil
		}
		if i := findChoice(s, m.Choices); i >= 0 {
			return i, nil
		}
		p.printText("There is no option %q.\n", s)
	}
}

func (p *linePrompter) ChooseSeveral(ctx context.Context, choices []Choice) ([]int, error) {
next:
	for {
		s, err := p.ReadText(ctx, fmt.Sprintf("Numbers [1-%d], or nothing for none of them: ", len(choices)), "")
		if err != nil {
			return nil, err
		}
		var picked []int
		for _, word := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' }) {
			i := findChoice(word, choices)
			if i < 0 {
				p.printText("There is no option %q.\n", word)
				continue next
			}
			picked = append(picked, i)
		}
		return picked, nil
	}
}

// findChoice returns the index of a choice by its number or its word, or -1.
func findChoice(s string, choices []Choice) int {
	if i := slices.IndexFunc(choices, func(c Choice) bool { return s != "" && (c.Word == s || c.Key == s) }); i >= 0 {
		return i
	}
	return slices.Index(choiceKeys(choices), s)
}

// choiceKeys returns what chooses each choice: its key, or its number among the choices without one.
func choiceKeys(choices []Choice) []string {
	keys := make([]string, len(choices))
	n := 0
	for i, c := range choices {
		if keys[i] = c.Key; c.Key == "" {
			n++
			keys[i] = strconv.Itoa(n)
		}
	}
	return keys
}

// describeNumbers returns the numbers and keys of choices, for a person.
func describeNumbers(choices []Choice) string {
	text := ""
	n := 0
	for _, c := range choices {
		if c.Key == "" {
			n++
		} else {
			text += " " + c.Key
		}
	}
	return fmt.Sprintf("1-%d%s", n, text)
}

// ReadText reads one line, byte by byte: what follows belongs to the next question. The end of the input leaves the
// question open. When ctx ends, ReadText abandons the current read; the process ends soon.
func (p *linePrompter) ReadText(ctx context.Context, prompt, _ string) (string, error) {
	defer p.keys.LendTerminal(true)()
	p.printText("%s", prompt)
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := readLine(p.in)
		done <- result{text, err}
	}()
	select {
	case <-ctx.Done():
		p.printText("\n")
		return "", ctx.Err()
	case r := <-done:
		if r.err == io.EOF {
			p.printText("\n")
			return "", ErrLeftOpen
		}
		return r.text, r.err
	}
}

func (p *linePrompter) printText(format string, args ...any) {
	_, _ = fmt.Fprintf(p.screen, format, args...)
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
