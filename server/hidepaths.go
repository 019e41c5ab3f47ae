package server

import (
	"path/filepath"
	"regexp"
	"strings"
)

// anyPath matches absolute paths in a text, and those below a home directory, with what is in front of them.
var anyPath = regexp.MustCompile(`(^|[\s'"(=:,])((?:~|[A-Za-z]:)?[/\\][^\s'",;:()/\\]+(?:[/\\][^\s'",;:()/\\]+)+[/\\]?)`)

// HidePaths returns the text of an error as callers may read it: it names agents by their names, files of agents by their paths below the agent,
// and other files by the last part of their paths. Where something lies on the server is none of a caller's business.
func HidePaths(text string, s *Service) string {
	dirs := s.process.Dirs
	hide := func(dir, name string) {
		for _, written := range []string{dir, dirs.ShortPath(dir)} {
			if written != "" && written != "." && filepath.Base(written) != written {
				text = strings.ReplaceAll(text, written+string(filepath.Separator), name)
				text = strings.ReplaceAll(text, written, strings.TrimSuffix(name, "/"))
			}
		}
	}
	for _, place := range s.process.ListAgents() {
		hide(place.Dir, place.Name+"/")
	}
	for _, dir := range []string{dirs.Agents, dirs.Functions, dirs.State, dirs.Cache, filepath.Dir(dirs.Config), dirs.Work} {
		hide(dir, "")
	}
	return anyPath.ReplaceAllStringFunc(text, func(found string) string {
		parts := anyPath.FindStringSubmatch(found)
		for _, route := range []string{"/api/", "/v1/", "/a2a/", "/agui/", "/mcp", "/runs/", "/.well-known/"} {
			if strings.HasPrefix(parts[2], route) {
				return found // an address of the server
			}
		}
		return parts[1] + filepath.Base(strings.ReplaceAll(parts[2], `\`, "/"))
	})
}
