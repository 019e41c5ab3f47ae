package chat

import (
	"context"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/term/editor"
	"raddle.dev/internal/process/conversation"
)

// A completer completes what a person types.
type completer struct {
	session *Session
	files   []string // of the workspace
	listed  time.Time
}

// complete returns what could stand at the end of a text before the cursor: a command, an argument of a command, or a
// file after an @.
func (c *completer) complete(before string) editor.Completion {
	if word, ok := lastAttachment(before); ok {
		return c.completeFile(word)
	}
	if strings.Contains(before, "\n") || len(before) == 0 || before[0] != '/' && before[0] != '.' {
		return editor.Completion{}
	}
	name, rest, args := strings.Cut(before[1:], " ")
	if !args {
		all := completeCommand(before)
		for _, own := range c.session.listOwn() {
			if strings.HasPrefix(own.Name, before[1:]) {
				all.Candidates = append(all.Candidates, editor.Candidate{Text: before[:1] + own.Name, Help: strings.TrimSpace(own.Hint + "  " + own.Description)})
			}
		}
		return all
	}
	command, err := findCommand(name)
	if err != nil {
		return editor.Completion{}
	}
	word := rest[strings.LastIndexByte(rest, ' ')+1:]
	return editor.Completion{Word: word, Candidates: matchWords(c.argumentWords(command.name), word)}
}

// completeCommand returns the commands that match a word, which begins with a slash: first those that begin with it.
func completeCommand(word string) editor.Completion {
	c := editor.Completion{Word: word, Always: word[0] == '/'}
	part := strings.ToLower(word[1:])
	for _, begins := range []bool{true, false} {
		for _, cmd := range listCommands() {
			if word[0] == '.' {
				for _, dot := range cmd.dots {
					if begins && strings.HasPrefix(dot, part) {
						c.Candidates = append(c.Candidates, editor.Candidate{Text: "." + dot, Help: cmd.help})
					}
				}
				continue
			}
			if strings.HasPrefix(cmd.name, part) == begins && (begins || len(part) > 2 && hasWord(cmd.help, part)) {
				c.Candidates = append(c.Candidates, editor.Candidate{
					Text: "/" + cmd.name,
					Help: strings.TrimSpace(cmd.args + "  " + cmd.help),
				})
			}
		}
	}
	return c
}

// hasWord reports whether a word of a text begins with letters.
func hasWord(text, letters string) bool {
	return strings.Contains(" "+strings.ToLower(text), " "+letters)
}

// argumentWords returns the words that a command takes.
func (c *completer) argumentWords(command string) []string {
	var words []string
	s := c.session
	switch command {
	case "agent", "run", "graph":
		for _, a := range s.Process.ListAgents() {
			words = append(words, a.Name)
		}
	case "model", "retry":
		for _, m := range s.Process.Models.ListNamed() {
			words = append(words, m.ID)
		}
	case "session":
		list, _ := conversation.List(context.Background(), s.Process, "") // without a list there is no completion
		for _, c := range list {
			if c.Agent == s.name {
				words = append(words, c.Name)
			}
		}
	case "mode":
		words = []string{"plan", "ask", "edits"}
	case "theme":
		words = []string{"auto", "dark", "light", "mono"}
	case "set":
		words = []string{"model", "mode"}
	case "variables":
		for _, v := range s.agent.Variables() {
			words = append(words, v.Name)
		}
	}
	return words
}

func matchWords(words []string, part string) []editor.Candidate {
	var list []editor.Candidate
	for _, w := range words {
		if strings.HasPrefix(w, part) {
			list = append(list, editor.Candidate{Text: w})
		}
	}
	return list
}

// lastAttachment returns the word at the end of a text if it begins with an @.
func lastAttachment(before string) (string, bool) {
	word := before[strings.LastIndexAny(before, " \t\n")+1:]
	return word, strings.HasPrefix(word, "@")
}

// maxCompleted is how many files a completion lists.
const maxCompleted = 50

// completeFile returns the files whose path contains the letters of a word in their order, the best matches first.
func (c *completer) completeFile(word string) editor.Completion {
	part := strings.ToLower(word[1:])
	type match struct {
		path string
		rank int
	}
	var found []match
	for _, path := range c.listFiles() {
		if rank, ok := matchPath(strings.ToLower(path), part); ok {
			found = append(found, match{path, rank})
		}
	}
	slices.SortStableFunc(found, func(a, b match) int { return a.rank - b.rank })
	all := editor.Completion{Word: word, Always: true}
	for _, m := range found[:min(len(found), maxCompleted)] {
		text := m.path
		if strings.ContainsAny(text, " \t") {
			text = `"` + text + `"`
		}
		all.Candidates = append(all.Candidates, editor.Candidate{Text: "@" + text})
	}
	return all
}

// matchPath reports whether a path contains the letters of a word in their order. The rank is lower for a better match.
func matchPath(path, word string) (rank int, ok bool) {
	base := filepath.Base(path)
	switch {
	case word == "":
		return strings.Count(path, "/"), true
	case strings.HasPrefix(path, word), strings.HasPrefix(base, word):
		return len(path), true
	case strings.Contains(path, word):
		return 1000 + len(path), true
	}
	at := 0
	for _, r := range word {
		i := strings.IndexRune(path[at:], r)
		if i < 0 {
			return 0, false
		}
		at += i + len(string(r))
	}
	return 10000 + len(path), true
}

const (
	filesFresh = 10 * time.Second
	maxListed  = 20000
)

// listFiles returns the files of the workspace, relative to it, without those that git ignores.
func (c *completer) listFiles() []string {
	if time.Since(c.listed) < filesFresh {
		return c.files
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c.files = nil
	c.listed = time.Now()
	work := c.session.Process.Dirs.Work
	cmd := exec.CommandContext(ctx, "git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
	cmd.Dir = work
	out, err := cmd.Output()
	if err != nil { // there is no git, or no repository
		c.files = walkFiles(ctx, work)
		return c.files
	}
	for path := range strings.SplitSeq(string(out), "\x00") {
		if path != "" && len(c.files) < maxListed {
			c.files = append(c.files, path)
		}
	}
	return c.files
}
