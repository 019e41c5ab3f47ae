package flow

import (
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"slices"

	"raddle.dev/internal/base/plainfile"
)

// Source is a file on which a run depends.
type Source struct {
	Path string `json:"path"` // relative to the agent's directory, or absolute outside it
	Hash string `json:"hash"` // of its content; empty: the file could not be read
}

// Sources returns the files on which a run of the agent depends: its
// definition, its scripts, and those of the agents that its files name. Agents
// that may be spawned only because they exist are not included: otherwise a
// change of one would count as a change of every agent next to it. The order is
// that of the file.
func (a *Agent) Sources() []Source {
	s := &sources{root: a.Dir, seen: map[string]bool{}}
	s.addAgent(a)
	return s.list
}

// Definition returns the text of the agent's file as it was loaded.
func (a *Agent) Definition() string {
	if a.Config != nil {
		return string(a.Config.Text)
	}
	return string(a.File.Text)
}

// ChildDefinitions returns the texts of the files of the agents below an agent, as they were loaded, by their path in
// Sources.
func ChildDefinitions(a *Agent) map[string]string {
	texts := map[string]string{}
	for _, child := range a.Agents()[1:] {
		if child.Dir != a.Dir {
			texts[sourcePath(a.Dir, child.Path())] = child.Definition()
		}
	}
	return texts
}

// sourcePath returns the path of a file in Sources.
func sourcePath(root, path string) string {
	if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.ToSlash(rel)
	}
	return path
}

type sources struct {
	root string
	list []Source
	seen map[string]bool
}

func (s *sources) addAgent(a *Agent) {
	if !s.addFile(a.Path()) {
		return
	}
	for _, path := range a.Tools.Scripts {
		s.addFile(path)
	}
	if a.spawnSet != nil {
		for _, name := range a.spawnSet.named {
			if child := a.spawnSet.agents[name]; child != nil {
				s.addAgent(child)
			}
		}
	}
	if a.Config != nil {
		return
	}
	for _, n := range a.File.Nodes {
		needs := needsOf(n)
		if needs.script != "" {
			s.addFile(scriptPath(a.Dir, needs.script))
		}
		if child := a.children[needs.agent]; child != nil {
			s.addAgent(child)
		}
	}
}

// largestSource is the size in bytes of the largest file whose changes are noticed.
const largestSource = 64 << 20

// addFile adds a file and reports whether it is new.
func (s *sources) addFile(path string) bool {
	if s.seen[path] {
		return false
	}
	s.seen[path] = true
	src := Source{Path: sourcePath(s.root, path)}
	_, src.Hash, _ = ReadSource(path)
	s.list = append(s.list, src)
	return true
}

// ReadSource reads a file on which a run may depend, and returns its text and its hash as a [Source] has it.
func ReadSource(path string) (text []byte, hash string, err error) {
	if text, err = plainfile.Read(path, largestSource); err != nil {
		return nil, "", err
	}
	return text, fmt.Sprintf("%x", sha256.Sum256(text))[:16], nil
}

// DescribeChanges returns the differences between the files at the start of a run and
// the current ones, one line each. It is empty if there are none.
func DescribeChanges(atStart, current []Source) []string {
	var lines []string
	for _, old := range atStart {
		i := slices.IndexFunc(current, func(s Source) bool { return s.Path == old.Path })
		switch {
		case i < 0 || current[i].Hash == "" && old.Hash != "":
			lines = append(lines, old.Path+" was removed or is no longer used")
		case current[i].Hash != old.Hash:
			lines = append(lines, old.Path+" has changed")
		}
	}
	for _, s := range current {
		if !slices.ContainsFunc(atStart, func(old Source) bool { return old.Path == s.Path }) {
			lines = append(lines, s.Path+" is new")
		}
	}
	return lines
}

// HashSources returns the files on which a run of the agent in a directory depended, with the hashes of their current
// content.
func HashSources(dir string, atStart []Source) []Source {
	s := &sources{root: dir, seen: map[string]bool{}}
	for _, old := range atStart {
		path := old.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, filepath.FromSlash(path))
		}
		s.addFile(path)
	}
	return s.list
}

// scriptPath returns the full path of a script of an agent in a directory.
func scriptPath(dir, script string) string {
	if filepath.IsAbs(script) {
		return script
	}
	return filepath.Join(dir, script)
}
