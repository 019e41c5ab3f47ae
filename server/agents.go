package server

import (
	"os"
	"path/filepath"
	"time"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/process/app"
)

// AgentInfo is what callers need to know of an agent of the catalogue.
type AgentInfo struct {
	Name        string          `json:"name"` // what a request calls it
	Dir         string          `json:"dir"`
	Kind        string          `json:"kind,omitempty"` // graph or agent; "" if it cannot be loaded
	Description string          `json:"description,omitempty"`
	Variables   []spec.Variable `json:"variables,omitempty"`
	Starters    []string        `json:"starters,omitempty"`
	Error       string          `json:"error,omitempty"` // why it cannot be loaded
}

// ReadChangeTime returns when the definition of the agent was last changed; zero: it cannot be read.
func (i *AgentInfo) ReadChangeTime() (at time.Time) {
	for _, name := range []string{"graph.yaml", "config.yaml"} {
		if info, err := os.Stat(filepath.Join(i.Dir, name)); err == nil && info.ModTime().After(at) {
			at = info.ModTime()
		}
	}
	return at
}

// IsGraph reports whether the agent is a graph: then it has no sessions.
func (i *AgentInfo) IsGraph() bool { return i.Kind == kindGraph }

// The kinds of agents.
const (
	kindGraph = "graph"
	kindAgent = "agent"
)

// ListAgents returns the agents of the catalogue, by name.
func (s *Service) ListAgents() []AgentInfo {
	var list []AgentInfo
	for _, place := range s.process.ListAgents() {
		info := AgentInfo{Name: place.Name, Dir: place.Dir}
		a, err := s.process.Load(app.LoadRequest{Agent: place.Name})
		if err != nil {
			info.Error = HidePaths(s.redact(err.Error()), s)
		} else {
			info.describe(a)
			_ = a.Close() // nothing was written
		}
		list = append(list, info)
	}
	return list
}

// LoadAgent loads an agent by its name in the catalogue, or by its path if the service allows paths. The caller must
// close it.
func (s *Service) LoadAgent(name string) (*AgentInfo, *flow.Agent, error) {
	if err := s.checkName(name); err != nil {
		return nil, nil, err
	}
	place, err := s.process.FindAgent(name)
	if err != nil {
		return nil, nil, err
	}
	a, err := s.process.Load(app.LoadRequest{Agent: name})
	if err != nil {
		return nil, nil, err
	}
	info := &AgentInfo{Name: name, Dir: place.Dir}
	info.describe(a)
	return info, a, nil
}

// ReadAgent describes an agent by its name in the catalogue, or by its path if the service allows paths.
func (s *Service) ReadAgent(name string) (*AgentInfo, error) {
	info, a, err := s.LoadAgent(name)
	if err != nil {
		return nil, err
	}
	return info, a.Close()
}

// describe sets what a loaded agent says about itself.
func (i *AgentInfo) describe(a *flow.Agent) {
	i.Variables, i.Starters = a.Variables(), a.Starters()
	if a.Config != nil {
		i.Kind = kindAgent
		i.Description = a.Config.Description
	} else {
		i.Kind = kindGraph
		i.Description = a.File.Description
	}
}

// redact removes the secrets that the process knows from a text.
func (s *Service) redact(text string) string { return s.process.Tools.SecretSet().Text(text) }
