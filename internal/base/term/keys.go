package term

import (
	"context"
	"os"
	"sync"

	tea "charm.land/bubbletea/v2"
	uv "github.com/charmbracelet/ultraviolet"
)

// A keyReader reads single keys from a terminal.
type keyReader struct {
	cancel func()
	done   sync.WaitGroup
}

// startKeyReader sends keys and pastes to a channel, as tea.KeyPressMsg and tea.PasteMsg, until it is stopped. When the
// terminal has no more input, it calls ended.
func startKeyReader(in *os.File, keys chan<- tea.Msg, ended func()) (*keyReader, error) {
	source, err := uv.NewCancelReader(in)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &keyReader{cancel: func() { stop(); source.Cancel() }}
	events := make(chan uv.Event)
	r.done.Go(func() {
		_ = uv.NewTerminalReader(source, os.Getenv("TERM")).StreamEvents(ctx, events) // an error ends the input, too
		close(events)
		_ = source.Close()
	})
	r.done.Go(func() {
		for ev := range events {
			var msg tea.Msg
			switch ev := ev.(type) {
			case uv.KeyPressEvent:
				msg = tea.KeyPressMsg(ev)
			case uv.PasteEvent:
				msg = tea.PasteMsg(ev)
			default:
				continue
			}
			select {
			case keys <- msg:
			case <-ctx.Done():
			}
		}
		if ctx.Err() == nil {
			ended()
		}
	})
	return r, nil
}

// stop ends the reader and waits for it. Keys that were typed and not read stay in the terminal.
func (r *keyReader) stop() {
	r.cancel()
	r.done.Wait()
}

// Keys are the keys that a person presses while an editor is on the screen. While the terminal is lent, keys go to the
// borrower.
type Keys struct {
	// Pressed receives tea.KeyPressMsg and tea.PasteMsg.
	Pressed <-chan tea.Msg
	// Ended is closed when the terminal has no more input: it was closed.
	Ended <-chan struct{}

	pressed chan tea.Msg
	end     func()
}

// CaptureKeys is like CaptureInput, and reads single keys: also Ctrl-C and Ctrl-Z are keys then, and send no signals.
// Release ends it. It returns nil if the stream is not a terminal, or if the keyboard is held already.
func (k *Keyboard) CaptureKeys() *Keys {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.terminal || k.held {
		return nil
	}
	pressed := make(chan tea.Msg, 16)
	ended := make(chan struct{})
	k.keys = &Keys{Pressed: pressed, Ended: ended, pressed: pressed, end: sync.OnceFunc(func() { close(ended) })}
	k.held = true
	k.stop = k.handleSignals()
	k.applyMode()
	k.startReader()
	return k.keys
}

// startReader starts to read keys, if keys are captured. The caller must hold mu.
func (k *Keyboard) startReader() {
	if k.keys == nil || k.lent || k.reader != nil {
		return
	}
	r, err := startKeyReader(k.in, k.keys.pressed, k.keys.end)
	if err != nil {
		k.keys.end()
		return
	}
	k.reader = r
	k.screen.markPastes(true)
}

// stopReader ends the reading of keys. The caller must hold mu.
func (k *Keyboard) stopReader() {
	if k.reader == nil {
		return
	}
	k.screen.markPastes(false)
	k.reader.stop()
	k.reader = nil
}
