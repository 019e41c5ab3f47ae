package toolbox

import (
	"context"
	"path/filepath"
	"slices"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
	"raddle.dev/tool/mcp"
)

// ServerInfo is an MCP server as it is shown to a person.
type ServerInfo struct {
	ID        string `json:"id"`
	Transport string `json:"transport"`
	Target    string `json:"target"` // what it runs, or its address, without secrets
	File      string `json:"file"`
	Note      string `json:"note,omitempty"` // why it is not used; empty: it is

	entry mcp.Server
}

// UserServersFile returns the path of the file with the servers of the user.
func (s *Shared) UserServersFile() string { return filepath.Join(s.Dirs.Config, serversFile) }

// ListServers returns the servers of the user and of the project. Of several with one id the first counts.
func (s *Shared) ListServers() ([]ServerInfo, error) {
	box := &Toolbox{shared: s}
	var list []ServerInfo
	add := func(file mcp.File, note string) {
		secrets := s.SecretSet()
		secrets.Add(file.Secrets(s.env.Lookup)...)
		for _, v := range file.Servers {
			info := ServerInfo{
				ID:        v.ID,
				Transport: string(v.Transport),
				Target:    secrets.Text(describeTarget(v)),
				File:      file.Path,
				Note:      note,
				entry:     v,
			}
			if slices.ContainsFunc(list, func(o ServerInfo) bool { return o.ID == v.ID }) {
				info.Note = "another one with this name counts"
			}
			list = append(list, info)
		}
	}
	for _, path := range box.serverFiles("")[1:] {
		file, err := mcp.Load(path)
		if err != nil {
			return nil, err
		}
		add(file, "")
	}
	file, digest, err := readProject(s.Dirs.Work)
	if err != nil {
		return nil, err
	}
	note := "needs consent: a run that uses it asks for it at a terminal"
	if given, err := s.consentStore().HasConsent(file.Path, digest); err == nil && given {
		note = ""
	}
	add(file, note)
	return list, nil
}

// TryServer starts a server and returns its tools, and what is wrong with some of them.
func (s *Shared) TryServer(ctx context.Context, id string) (tools []tool.Tool, left []error, err error) {
	if _, err := s.findServer(id); err != nil {
		return nil, nil, err
	}
	box := s.NewToolbox(s.Dirs.Work, s.Dirs.Functions)
	if _, err := s.NewGate(box, "", nil); err != nil { // the rules say what a server in the box reaches
		return nil, nil, err
	}
	set, err := box.Open(flow.ToolNeed{Dir: s.Dirs.Functions, Servers: []string{id}})
	if err != nil {
		return nil, nil, err
	}
	if set.Serve == nil || len(set.Servers) == 0 {
		text := "mcp_server_support is off"
		if len(set.Problems) > 0 {
			text = set.Problems[len(set.Problems)-1].Text
		}
		return nil, nil, failure.NewInvalid("", "%s", text)
	}
	tools, left = set.Serve(ctx, set.Servers)
	if len(tools) == 0 && len(left) > 0 {
		return nil, nil, left[0]
	}
	return tools, left, nil
}

// FindLogin returns the address of a server on the network and how to log in to it, with references filled in.
func (s *Shared) FindLogin(id string) (address string, login mcp.Login, err error) {
	v, err := s.findServer(id)
	if err != nil {
		return "", login, err
	}
	if v.Command != "" {
		return "", login, failure.NewUsage("write a credential into \"env\" of the entry if it needs one", "the MCP server %q runs on this machine: there is no login", id)
	}
	v, err = v.ExpandReferences(s.env.Lookup)
	return v.URL, v.Login, err
}

// findServer returns the entry of a server of the user or of the project.
func (s *Shared) findServer(id string) (mcp.Server, error) {
	list, err := s.ListServers()
	if err != nil {
		return mcp.Server{}, err
	}
	var names []string
	for _, v := range list {
		if v.ID == id {
			return v.entry, nil
		}
		names = append(names, v.ID)
	}
	next := wording.SuggestNearest(id, names, "")
	if next == "" {
		next = "see: raddle mcp ls"
	}
	return mcp.Server{}, failure.NewUsage(next, "there is no MCP server %q", id)
}
