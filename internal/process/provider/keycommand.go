package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// commandSource describes to people a key that a command writes.
const commandSource = "a command"

const (
	keyCommandTime  = 30 * time.Second // that a command may take, with the time in which a person unlocks something
	keyCommandLimit = 64 << 10         // bytes of its output
	// in which a command that failed is not run again: calls at the same time ask the person once
	keyCommandPause = 10 * time.Second
)

// A keyCommand is a command of config.yaml that writes a key. It runs once for the whole process, when the key is first
// needed.
type keyCommand struct {
	client string
	words  []string
	at     string // its place in config.yaml
	env    environ.Environ

	turn   chan struct{} // holds one value while a call uses the fields below
	key    string
	err    error // of the last run
	failed time.Time
}

func newKeyCommand(c config.Client, env environ.Environ) *keyCommand {
	return &keyCommand{
		client: c.Name,
		words:  c.KeyCommand,
		at:     fmt.Sprintf("%s:%d", config.FileName, c.KeyCommandAt),
		env:    env,
		turn:   make(chan struct{}, 1),
	}
}

// readKey returns the key. It calls learned with the key before it returns it for the first time.
func (k *keyCommand) readKey(ctx context.Context, learned func(key string)) (string, error) {
	select {
	case k.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-k.turn }()
	if k.key != "" || k.err != nil && time.Since(k.failed) < keyCommandPause {
		return k.key, k.err
	}
	key, err := k.run(ctx)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil {
		learned(key)
	}
	k.key = key
	k.err = err
	k.failed = time.Now()
	return key, err
}

// run runs the command and returns the first line of its output.
func (k *keyCommand) run(ctx context.Context) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		text := fmt.Sprintf(format, args...)
		return "", &llm.Error{
			Class:   llm.Auth,
			Message: fmt.Sprintf("no key of client %q: its api_key_command (%s) %s", k.client, k.at, text),
		}
	}
	env := []string(k.env)
	if env == nil {
		env = []string{}
	}
	res, err := proc.Run(ctx, proc.Command{
		Path:    k.words[0],
		Args:    k.words[1:],
		Env:     env,
		Timeout: keyCommandTime,
		Limit:   keyCommandLimit,
	})
	if exit, ok := errors.AsType[*proc.ExitError](err); ok {
		text := fmt.Sprintf("ended with exit code %d", exit.Code)
		if exit.Signal != "" {
			text = "was ended by " + exit.Signal
		}
		if stderr := shortenStderr(res.Stderr); stderr != "" {
			text += ":\n" + stderr
		}
		return fail("%s", text)
	}
	if err != nil {
		return fail("failed: %v", err)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(res.Stdout)), "\n")
	key := strings.TrimSpace(first)
	switch {
	case key == "":
		return fail("wrote nothing")
	case res.StdoutDropped > 0:
		return fail("wrote more than %d KiB", keyCommandLimit>>10)
	case strings.ContainsFunc(key, isNoKeyCharacter):
		return fail("wrote a first line that is no key: it has white space or characters that no key has")
	}
	return key, nil
}

// isNoKeyCharacter reports whether no key has a character.
func isNoKeyCharacter(r rune) bool { return r <= ' ' || r >= 0x7f }

// shortenStderr returns the last lines of what a command wrote, for a message.
func shortenStderr(text []byte) string {
	const most, longest = 5, 1000
	lines := strings.Split(strings.TrimSpace(strings.ToValidUTF8(string(proc.StripEscapes(text)), "?")), "\n")
	short := strings.Join(lines[max(0, len(lines)-most):], "\n")
	return strings.ToValidUTF8(short[max(0, len(short)-longest):], "")
}
