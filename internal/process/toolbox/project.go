package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/tool/mcp"
)

// ProjectServersFile is the name of the file in which a project lists MCP servers.
const ProjectServersFile = ".mcp.json"

// largestProject is the size in bytes above which such a file is not read.
const largestProject = 1 << 20

// readProject returns the servers that a workspace lists, and the digest of the file. A missing file has no servers and
// no digest.
func readProject(workspace string) (file mcp.File, digest string, err error) {
	path := filepath.Join(workspace, ProjectServersFile)
	text, err := plainfile.ReadBeneath(workspace, ProjectServersFile, largestProject)
	if errors.Is(err, fs.ErrNotExist) {
		return mcp.File{Path: path}, "", nil
	}
	if err != nil {
		return mcp.File{Path: path}, "", err
	}
	sum := sha256.Sum256(text)
	file, err = mcp.Parse(path, text)
	return file, hex.EncodeToString(sum[:]), err
}

// openProject returns the servers of the project that an agent wants, by their ids, nil if there are none or without
// consent. known are the ids of other files, which count first. What is opened is the text that the consent is for.
func (tb *Toolbox) openProject(wanted, known []string, set *flow.Toolset) *mcp.Servers {
	file, digest, err := readProject(tb.workspace)
	if err != nil {
		set.Problems = append(set.Problems, flow.ToolProblem{Text: fmt.Sprintf("the servers of %s are not used: %v", tb.shared.Dirs.ShortPath(file.Path), err)})
		return nil
	}
	if !wantsProject(wanted, file, known) {
		return nil
	}
	if given, err := tb.shared.consentStore().HasConsent(file.Path, digest); err != nil || !given {
		set.Problems = append(set.Problems, flow.ToolProblem{
			Server: wanted[0],
			Text:   fmt.Sprintf("the servers of %s are not used: they need consent before they run", tb.shared.Dirs.ShortPath(file.Path)),
		})
		return nil
	}
	tb.mu.Lock()
	defer tb.mu.Unlock()
	if s := tb.servers[file.Path]; s != nil {
		return s
	}
	return tb.openFile(file, set)
}

// wantsProject reports whether an agent that names servers would use one of the project.
func wantsProject(wanted []string, file mcp.File, known []string) bool {
	return slices.ContainsFunc(file.Servers, func(s mcp.Server) bool {
		return !slices.Contains(known, s.ID) && (slices.Contains(wanted, s.ID) || slices.Equal(wanted, []string{"all"}))
	})
}

// findProjectServers returns the file with the servers of the project that a run would use with the user's consent.
func (s *Shared) findProjectServers(a *flow.Agent) []ImplicitDir {
	file, digest, err := readProject(s.Dirs.Work)
	if err != nil || digest == "" {
		return nil // an agent that wants them reports it
	}
	uses := false
	for _, child := range a.Agents() {
		var wanted, known []string
		if child.Config != nil {
			wanted = child.Config.MCPServers
		} else if child.File != nil {
			wanted = child.File.MCPServers
		}
		if child.Tools != nil {
			known = slices.Concat(child.Tools.Servers, child.Tools.SkillServers)
		}
		if !slices.Equal(wanted, []string{"all"}) {
			for _, skill := range flow.ListSkills(child) {
				wanted = append(wanted[:len(wanted):len(wanted)], skill.Servers...)
			}
		}
		uses = uses || wantsProject(wanted, file, known)
	}
	if on := s.Config.MCP; !uses || on != nil && !*on {
		return nil
	}
	was, no, err := s.consentStore().LookUpConsent(file.Path)
	if err != nil || no || was == digest {
		return nil
	}
	secrets := s.SecretSet()
	secrets.Add(file.Secrets(s.env.Lookup)...)
	var list []string
	for _, v := range file.Servers {
		list = append(list, secrets.Text(v.ID+": "+describeTarget(v)))
	}
	return []ImplicitDir{{Dir: file.Path, Servers: true, Files: list, Digest: digest}}
}

// describeTarget returns what a server runs, or its address, as its file writes it.
func describeTarget(v mcp.Server) string {
	if v.Command != "" {
		return strings.Join(append([]string{v.Command}, v.Args...), " ")
	}
	return v.URL
}
