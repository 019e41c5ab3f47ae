// Package guide holds the guides to raddle, which `raddle help TOPIC` shows.
package guide

import (
	"embed"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed *.md
var files embed.FS

// Topic is one guide.
type Topic struct {
	Name  string // of its file, without the extension, such as graph-files
	Title string // the heading at its top
	Text  string // Markdown
}

// ListTopics returns all guides, sorted by name. They are read when they are first needed: most commands show none.
var ListTopics = sync.OnceValue(readTopics)

// FindTopic returns the guide with a name, or nil if there is none.
func FindTopic(name string) *Topic {
	topics := ListTopics()
	i := slices.IndexFunc(topics, func(t Topic) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &topics[i]
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

// A section is a part of a guide that has a name of its own.
type section struct{ name, topic, heading string }

var sections = []section{
	{"configuration", "command-line", "## Configuration"},
	{"exit-codes", "command-line", "## Exit codes"},
	{"keys", "models", "## Keys"},
	{"templates", "graph-files", "## Templates"},
}

// SectionNames returns the names of the parts of guides that [FindSection] finds, sorted.
func SectionNames() []string {
	names := make([]string, len(sections))
	for i, s := range sections {
		names[i] = s.name
	}
	return names
}

// FindSection returns the text of a part of a guide, or "" if there is none with the name.
func FindSection(name string) string {
	i := slices.IndexFunc(sections, func(s section) bool { return s.name == name })
	if i < 0 {
		return ""
	}
	_, text, found := strings.Cut(FindTopic(sections[i].topic).Text, "\n"+sections[i].heading+"\n")
	if !found {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return strings.TrimPrefix(sections[i].heading, "#") + "\n" + text + "\n"
}
