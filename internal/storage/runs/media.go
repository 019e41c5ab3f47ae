package runs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"raddle.dev/agent"
	"raddle.dev/graph"
	"raddle.dev/internal/storage/attach"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
)

// Pictures and documents that a model or a tool makes are in the journal. They are also saved as files, so that a
// person can open them: in a directory for each thread, which is removed with it, and with names made of their content.

// mediaDir returns the directory of the files of a thread.
func mediaDir(dirs config.Dirs, thread string) string {
	return filepath.Join(dirs.State, "media", shortHash([]byte(thread)))
}

func shortHash(content []byte) string {
	const bytes = 8
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:bytes])
}

// MediaOf returns what a model or a tool has made, if an event says that it has answered.
func MediaOf(ev graph.Event) []llm.Part {
	emitted, _ := ev.Body.(graph.ValueEmitted)
	switch v := emitted.Value.(type) {
	case agent.ReplyDone:
		return llm.Media(v.Message.Parts)
	case agent.ToolDone:
		return v.Media
	}
	return nil
}

// SaveMedia saves the pictures and documents among parts as files of a thread, and returns them with their paths as
// names. What its bytes do not show to be one is left out.
func SaveMedia(dirs config.Dirs, thread string, parts []llm.Part) (saved []attach.File, err error) {
	dir := mediaDir(dirs, thread)
	for _, p := range llm.Media(parts) {
		content := attach.BytesOf(p)
		ext, err := attach.Extension(attach.Sniff(content))
		if err != nil || len(content) > attach.MaxMessage {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return saved, fmt.Errorf("a picture of the run: %w", err)
		}
		path := filepath.Join(dir, shortHash(content)+ext)
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_, err = f.Write(content)
			if err = errors.Join(err, f.Close()); err != nil {
				err = errors.Join(err, os.Remove(path))
			}
		} else if errors.Is(err, fs.ErrExist) { // it was made before
			err = nil
		}
		if err != nil {
			return saved, fmt.Errorf("a picture of the run: %w", err)
		}
		saved = append(saved, attach.File{Name: path, Media: p})
	}
	return saved, nil
}

// removeMedia removes the files of threads that are removed.
func removeMedia(dirs config.Dirs, threads ...string) error {
	for _, thread := range threads {
		if err := os.RemoveAll(mediaDir(dirs, thread)); err != nil {
			return err
		}
	}
	return nil
}
