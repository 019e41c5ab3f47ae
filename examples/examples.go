// Package examples holds the example agents, which are part of the program. Their models are transcripts: they need no
// key and no network.
package examples

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed assistant handbook hello leave map-reduce reference research review triage
var embedded embed.FS

// An Example is an agent that shows something.
type Example struct {
	Name   string `json:"name"` // of its directory, with slashes
	About  string `json:"about"`
	Prompt string `json:"prompt,omitempty"` // that its transcript knows; "": it needs none
	Needs  string `json:"needs,omitempty"`  // programs
}

// ListAll returns the examples, the simplest one first.
func ListAll() []Example {
	return []Example{
		{
			Name:   "hello",
			About:  "A graph with one call of a model",
			Prompt: "Ada",
		},
		{
			Name:  "triage",
			About: "Branches at the same time, scripts, a question to you",
			Needs: "bash",
		},
		{
			Name:   "leave",
			About:  "Waits for people with deadlines, and for a time",
			Prompt: "Ada, 24 August",
		},
		{
			Name:  "map-reduce",
			About: "Every part of a text at once",
			Needs: "bash",
		},
		{
			Name:   "research",
			About:  "Models that call tools and name their sources",
			Prompt: "Why do warp threads break?",
			Needs:  "bash",
		},
		{
			Name:   "handbook",
			About:  "Answers from documents",
			Prompt: "How long is the notice period?",
		},
		{
			Name:   "assistant",
			About:  "An agent with tools and an MCP server",
			Prompt: "Where is order 1007, and what would two raddles cost?",
			Needs:  "bash, python3",
		},
		{
			Name:   "review",
			About:  "A team: an agent that starts four others",
			Prompt: "May this change be merged?",
			Needs:  "bash",
		},
		{
			Name:   "reference/graph",
			About:  "Every field of a graph.yaml, with comments",
			Prompt: "Which knot holds?",
			Needs:  "bash",
		},
		{
			Name:   "reference/agent",
			About:  "Every field of a config.yaml, with comments",
			Prompt: "About knots?",
		},
	}
}

// FindExample returns the example with a name.
func FindExample(name string) (Example, bool) {
	for _, e := range ListAll() {
		if e.Name == name {
			return e, true
		}
	}
	return Example{}, false
}

// CopyTo writes the files of an example to its directory below dir, and returns that directory. It overwrites nothing:
// a directory that exists is an error, for [errors.Is] with [fs.ErrExist].
func CopyTo(e Example, dir string) (place string, err error) {
	place = filepath.Join(dir, filepath.FromSlash(e.Name))
	if _, err := os.Lstat(place); err == nil {
		return place, fs.ErrExist
	}
	files, err := fs.Sub(embedded, e.Name)
	if err != nil {
		return place, err
	}
	return place, writeWhole(place, func(dir string) error { return os.CopyFS(dir, files) })
}

// writeWhole writes a directory with what write puts into it: all of it, or nothing if that fails or the program is
// killed. A directory that exists is an error, for [errors.Is] with [fs.ErrExist].
func writeWhole(place string, write func(dir string) error) error {
	above := filepath.Dir(place)
	if err := os.MkdirAll(above, 0o755); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(above, ".unfinished-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	whole := filepath.Join(temp, filepath.Base(place)) // a temporary directory itself is closed to others
	if err := write(whole); err != nil {
		return err
	}
	err = os.Rename(whole, place)
	if _, there := os.Lstat(place); err != nil && there == nil {
		return fs.ErrExist
	}
	return err
}

// UnpackAll writes all examples below the directory examples of a directory in dir whose name changes with their contents,
// unless they are there, and returns that directory.
func UnpackAll(dir string) (root string, err error) {
	digest := sha256.New()
	err = fs.WalkDir(embedded, ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(name)
		_, _ = digest.Write(append([]byte(name+"\x00"), text...)) // it never fails
		return err
	})
	if err != nil {
		return "", err
	}
	root = filepath.Join(dir, hex.EncodeToString(digest.Sum(nil))[:12])
	if _, err := os.Lstat(root); err == nil {
		return root, nil
	}
	err = writeWhole(root, func(dir string) error { return os.CopyFS(filepath.Join(dir, "examples"), embedded) })
	if errors.Is(err, fs.ErrExist) { // another process was faster
		err = nil
	}
	return root, err
}
