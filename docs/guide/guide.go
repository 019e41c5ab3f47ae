// Package guide holds the guides to raddle, which `raddle help TOPIC` shows.
package guide

import (
	"embed"
	"path"
	"slices"
	"strings"
)

//go:embed *.md
var files embed.FS

// Topic is one guide.
type Topic struct {
	Name  string // of its file, without the extension, such as graph-files
	Title string // the heading at its top
	Text  string // Markdown
}

// Topics are all guides, sorted by name.
var Topics = readTopics()

// FindTopic returns the guide with a name, or nil if there is none.
func FindTopic(name string) *Topic {
	i := slices.IndexFunc(Topics, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &Topics[i]
}

// readTopics returns the embedded files as topics.
func readTopics() []Topic {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	topics := make([]Topic, len(entries))
	for i, e := range entries {
		text, err := files.ReadFile(e.Name())
		if err != nil {
			panic(err)
		}
		heading, _, _ := strings.Cut(string(text), "\n")
		topics[i] = Topic{
			Name: strings.TrimSuffix(e.Name(), path.Ext(e.Name())), Title: strings.TrimPrefix(heading, "# "), Text: string(text),
		}
	}
	slices.SortFunc(topics, func(a, b Topic) int { return strings.Compare(a.Name, b.Name) })
	return topics
}
