package setup

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
)

// A person answers questions in order: with the beginning of a choice, with a text, or with a secret. Without a further
// answer the person leaves the question open.
type person struct {
	answers []string
	asked   []string // questions, and the prompts of texts
}

func (p *person) next() (string, error) {
	if len(p.answers) == 0 {
		return "", term.ErrLeftOpen
	}
	answer := p.answers[0]
	p.answers = p.answers[1:]
	return answer, nil
}

func (p *person) ShowQuestion(_ context.Context, question string, _ []term.Choice) error {
	if question != "" {
		p.asked = append(p.asked, question)
	}
	return nil
}

func (p *person) ChooseOne(_ context.Context, m term.Menu) (int, error) {
	answer, err := p.next()
	i := slices.IndexFunc(m.Choices, func(c term.Choice) bool { return strings.HasPrefix(c.Label, answer) })
	if err == nil && i < 0 {
		panic("no choice begins with " + answer)
	}
	return max(i, 0), err
}

func (p *person) ChooseSeveral(context.Context, []term.Choice) ([]int, error) {
	panic("the guide asks for one choice at a time")
}

func (p *person) ReadText(_ context.Context, prompt, _ string) (string, error) {
	p.asked = append(p.asked, prompt)
	return p.next()
}

func (p *person) ReadSecret(ctx context.Context, prompt string) (string, error) {
	return p.ReadText(ctx, prompt, "")
}

// newGuide returns a guide for a person with an empty home directory, and what returns all that was written to the screen.
func newGuide(t *testing.T, answers ...string) (g *Guide, who *person, screen func() string) {
	t.Helper()
	dir := t.TempDir()
	var files []*os.File
	for _, name := range []string{"in", "out", "err"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		files = append(files, f)
	}
	open := func() (*app.Process, error) {
		p, err := app.Open(app.Options{
			Environ: []string{"HOME=" + filepath.Join(dir, "home"), "PATH=" + os.Getenv("PATH"), "RADDLE_BOX=false"},
			Work:    filepath.Join(dir, "work"),
		})
		if err == nil {
			t.Cleanup(func() { _ = p.Close() })
		}
		return p, err
	}
	for _, name := range []string{"home", "work"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p, err := open()
	if err != nil {
		t.Fatal(err)
	}
	who = &person{answers: answers}
	g = &Guide{Console: console.New(files[0], files[1], files[2], bytes.Clone), Process: p, Prompter: who, Reopen: open}
	return g, who, func() string {
		text, err := os.ReadFile(files[2].Name())
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}
