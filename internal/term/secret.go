package term

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"charm.land/huh/v2"
	xterm "golang.org/x/term"
)

// ReadSecret reads a line that is not shown: each character is a star.
func (p *formPrompter) ReadSecret(ctx context.Context, prompt string) (string, error) {
	var text string
	field := huh.NewInput().Prompt(prompt).EchoMode(huh.EchoModePassword).Value(&text)
	err := p.runForm(ctx, field, "Enter is done; Esc leaves the question open")
	return text, err
}

// ReadSecret reads a line that is not shown.
func (p *linePrompter) ReadSecret(ctx context.Context, prompt string) (string, error) {
	defer p.keys.LendTerminal(true)()
	defer p.keys.SaveMode()() // a read that is abandoned leaves the echo off
	signals, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	p.printText("%s", prompt)
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() {
		text, err := xterm.ReadPassword(int(p.in.Fd()))
		done <- result{text, err}
	}()
	select {
	case <-signals.Done():
		p.printText("\n")
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", ErrInterrupted
	case r := <-done:
		p.printText("\n")
		if r.err != nil {
			return "", ErrLeftOpen // the end of the input
		}
		return string(r.text), nil
	}
}
