// Package recorded holds two small agents whose models are recorded: a person can look at raddle without a key, a model
// and a network.
package recorded

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed agents
var embedded embed.FS

// An Agent is a recorded agent.
type Agent struct {
	Name   string // of its directory
	Title  string // what a person sees there
	Prompt string // that the recording knows
	Graph  bool   // it runs once; otherwise it talks
}

// List returns the agents.
func List() []Agent {
	return []Agent{
		{
			Name:   "trip",
			Title:  "A graph  two branches at once, and a question to you",
			Prompt: "Bergen in March",
			Graph:  true,
		},
		{
			Name:   "packing",
			Title:  "A talk   an agent that asks, and writes a file if you agree",
			Prompt: "Write me a packing list.",
		},
	}
}

// Write writes the files of an agent below a directory, and returns the agent's directory.
func Write(dir, name string) (string, error) {
	root := "agents/" + name
	place := filepath.Join(dir, name)
	err := fs.WalkDir(embedded, root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := embedded.ReadFile(path)
		if err != nil {
			return err
		}
		target := filepath.Join(place, filepath.Base(path))
		if err := os.MkdirAll(place, 0o700); err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o600)
	})
	return place, err
}
