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
	"raddle.dev/internal/testkit/testfile"
)

// A person answers questions in order: with the beginning of a choice, with a text, or with a secret. Without a further
// answer the person leaves the question open.
type person struct {
	t       *testing.T
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
		p.t.Fatalf("no choice begins with %q", answer)
	}
	return max(i, 0), err
}

func (p *person) ChooseSeveral(context.Context, []term.Choice) ([]int, error) {
	p.t.Fatal("the guide asks for one choice at a time")
	return nil, nil
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
	streams := testfile.OpenStreams(t)
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
	who = &person{t: t, answers: answers}
	g = &Guide{
		Console:  console.New(streams.In, streams.Out, streams.Err, bytes.Clone),
		Process:  p,
		Prompter: who,
		Reopen:   open,
	}
	return g, who, func() string { return testfile.Read(t, streams.Err) }
}
