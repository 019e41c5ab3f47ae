package toolbox

import (
	"os"
	"path/filepath"
)

// KnownFile is a file or directory that raddle reads if it is there.
type KnownFile struct {
	What   string `json:"what"` // tools, servers, skills or permissions
	Path   string `json:"path"`
	Exists bool   `json:"exists"`
}

// KnownFiles returns the places where raddle looks for tools, MCP servers and
// permissions, in addition to the agents' own directories.
func (s *Shared) KnownFiles() []KnownFile {
	d := s.Dirs
	files := []KnownFile{{What: "tools", Path: filepath.Join(d.Functions, "tools")}}
	for _, path := range (&Toolbox{shared: s, workspace: d.Work}).serverFiles("")[1:] { // the first belongs to an agent
		files = append(files, KnownFile{What: "servers", Path: path})
	}
	for _, path := range append([]string{filepath.Join(d.Config, skillsDir)}, ProjectSkillDirs(d.Work)[:2]...) {
		files = append(files, KnownFile{What: "skills", Path: path})
	}
	files = append(files, KnownFile{What: "permissions", Path: filepath.Join(d.Config, grantsFile)},
		KnownFile{What: "permissions", Path: filepath.Join(d.Work, filepath.FromSlash(projectFile))})
	for i := range files {
		_, err := os.Stat(files[i].Path)
		files[i].Exists = err == nil
	}
	return files
}
