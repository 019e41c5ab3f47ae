package chat

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/signal"
	"strings"

	"raddle.dev/internal/base/term/editor"
)

// runPlain runs the conversation with plain lines: for terminals that cannot move the cursor, and for screen readers.
func (s *Session) runPlain(ctx context.Context) error {
	s.greet(ctx)
	s.continueTurn(ctx)
	lines := bufio.NewReader(s.In)
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	for {
		if !s.waitForTurn(ctx, interrupts) || s.leaving {
			break
		}
		s.Screen.PrintLine("")
		text, err := s.readMessage(lines)
		if err != nil {
			break // the end of the input, or a terminal that was closed
		}
		s.echoed = text
		s.submit(ctx, text)
	}
	s.stopTurn()
	s.closeAgent()
	return nil
}

// waitForTurn waits until no turn works. It returns false if the conversation is to end.
func (s *Session) waitForTurn(ctx context.Context, interrupts <-chan os.Signal) bool {
	for s.turn != nil {
		select {
		case end := <-s.turn.done:
			s.finishTurn(ctx, end)
		case <-interrupts:
			s.interruptTurn()
		case <-ctx.Done():
			return false
		}
	}
	for len(interrupts) > 0 {
		<-interrupts
	}
	return true
}

// readMessage reads a line, and more lines after a backslash and inside a ::: block.
func (s *Session) readMessage(lines *bufio.Reader) (string, error) {
	_, _ = s.Screen.Write([]byte("> "))
	text := ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil && (line == "" || err != io.EOF) {
			return "", err
		}
		line = strings.TrimRight(line, "\r\n")
		if more, ok := strings.CutSuffix(line, `\`); ok {
			text += more + "\n"
			continue
		}
		if text += line; editor.IsOpenBlock(text) {
			text += "\n"
			continue
		}
		return text, nil
	}
}
