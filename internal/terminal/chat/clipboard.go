package chat

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"raddle.dev/internal/storage/attach"
)

// A clipboardReader is a program of the system that writes the picture in the clipboard to its standard output.
type clipboardReader struct {
	program string
	args    []string
	needs   string // variable of the environment that must be set; "": none
	base64  bool   // it writes base64
}

// readPowerShell writes the picture in the clipboard of Windows as a PNG in base64.
const readPowerShell = `Add-Type -AssemblyName System.Windows.Forms, System.Drawing; $i = [System.Windows.Forms.Clipboard]::GetImage(); if ($i) { $m = New-Object System.IO.MemoryStream; $i.Save($m, [System.Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray()) }`

// listClipboardReaders returns the programs that may be there, the best one first.
func listClipboardReaders(system string) (list []clipboardReader) {
	windows := clipboardReader{
		program: "powershell.exe",
		args:    []string{"-NoProfile", "-NonInteractive", "-STA", "-Command", readPowerShell},
		base64:  true,
	}
	switch system {
	case "darwin":
		return []clipboardReader{{program: "pngpaste", args: []string{"-"}}}
	case "windows":
		return []clipboardReader{windows}
	}
	for _, kind := range []string{"image/png", "image/jpeg"} {
		list = append(list,
			clipboardReader{
				program: "wl-paste",
				args:    []string{"--no-newline", "--type", kind},
				needs:   "WAYLAND_DISPLAY",
			},
			clipboardReader{
				program: "xclip",
				args:    []string{"-selection", "clipboard", "-t", kind, "-o"},
				needs:   "DISPLAY",
			})
	}
	windows.needs = "WSL_DISTRO_NAME"
	return append(list, windows)
}

// These are the limits of a program that reads the clipboard.
const (
	clipboardTime = 5 * time.Second
	clipboardMost = 20 << 20
)

// readClipboard returns the picture in the clipboard. tried says which programs could have read one.
func readClipboard(ctx context.Context, readers []clipboardReader) (picture []byte, tried []string) {
	ctx, cancel := context.WithTimeout(ctx, clipboardTime)
	defer cancel()
	for _, r := range readers {
		if r.needs != "" && os.Getenv(r.needs) == "" {
			continue
		}
		path, err := exec.LookPath(r.program)
		if err != nil {
			continue
		}
		tried = append(tried, r.program)
		if content := r.run(ctx, path); attach.Sniff(content) != "" {
			return content, tried
		}
	}
	return nil, tried
}

// run returns what the program writes, or nothing if it fails or writes too much.
func (r *clipboardReader) run(ctx context.Context, path string) []byte {
	cmd := exec.CommandContext(ctx, path, r.args...)
	cmd.WaitDelay = time.Second
	out := &limitedBuffer{most: clipboardMost}
	cmd.Stdout = out
	if cmd.Run() != nil {
		return nil
	}
	if !r.base64 {
		return out.kept.Bytes()
	}
	content, err := base64.StdEncoding.DecodeString(strings.TrimSpace(out.kept.String()))
	if err != nil {
		return nil
	}
	return content
}

// A limitedBuffer is a buffer that takes no more than most bytes: writing more is an error, which ends the program that
// writes.
type limitedBuffer struct {
	kept bytes.Buffer
	most int
}

// Write implements [io.Writer].
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.most {
		return 0, fmt.Errorf("more than %d bytes", b.most)
	}
	return b.kept.Write(p)
}

// pastePicture attaches the picture in the clipboard to the next message.
func pastePicture(ctx context.Context, s *Session) {
	content, tried := readClipboard(ctx, listClipboardReaders(runtime.GOOS))
	switch {
	case len(tried) == 0:
		s.setNotice("No program reads pictures from the clipboard here: install " + clipboardAdvice(runtime.GOOS) + ", or attach a file with @")
	case content == nil:
		s.setNotice("There is no picture in the clipboard. Your terminal pastes text, mostly with Ctrl-Shift-V.")
	default:
		s.attached.pasted++
		kind, _ := attach.Extension(attach.Sniff(content))
		f, err := attach.New(fmt.Sprintf("clipboard-%d%s", s.attached.pasted, kind), content)
		if err == nil {
			err = attachNext(s, f)
		}
		if err != nil {
			s.Backend.ShowError(err)
		}
	}
}

// clipboardAdvice names the programs that read the clipboard of a system.
func clipboardAdvice(system string) string {
	switch system {
	case "darwin":
		return "pngpaste"
	case "windows":
		return "PowerShell"
	}
	return "wl-clipboard or xclip"
}
