package flow

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
)

// spawnSet contains the agents that an agent may spawn, and the agents that these
// may spawn. All of them are searched in the directories that the agent itself
// uses. Agents that may spawn the same agents have the same spawn set.
type spawnSet struct {
	agents map[string]*Agent
	faults map[string]error  // of those that cannot be spawned
	named  []string          // those that a file names, in the order in which they are named
	dirs   map[string]string // directories of all existing agents, by name
}

// spawnSetKey is the key under which equal crews are shared.
type spawnSetKey struct {
	at    loadContext // of its agents, without a directory
	in    string      // the directories that are searched
	names string      // that the agent may spawn
}

// canSpawn reports whether the agent's models may spawn others: a config.yaml
// says so, and a graph may if it runs agents.
func (a *Agent) canSpawn() bool {
	if a.Config != nil {
		return a.Config.Team.CanSpawn
	}
	return a.File.CanSpawn()
}

// isTeamLead reports whether the agent is the lead under which others are spawned: a
// member of a team shares the spawn set of its lead.
func (a *Agent) isTeamLead() bool {
	if a.Config != nil {
		return a.Config.Team.CanSpawn && !a.member
	}
	return a.canSpawn() && slices.ContainsFunc(a.File.Nodes, func(n *spec.Node) bool {
		r := needsOf(n).request
		return r != nil && listsSpawnTool(r.Tools)
	})
}

// maxSpawnDepth returns the maximum depth of the agents that the agent spawns.
func maxSpawnDepth(a *Agent) int {
	if a.Config != nil {
		return a.Config.Team.MaxDepth
	}
	return a.host.maxDepth()
}

// listsSpawnTool reports whether one of the tools is for agents that spawn others.
func listsSpawnTool(tools []string) bool {
	return slices.ContainsFunc(tools, func(name string) bool { return slices.Contains(spec.SupervisorTools, name) })
}

// resolveSpawnSet loads the agents that the agent may spawn. An error in one of them
// only prevents that agent from being spawned.
func (l *loader) resolveSpawnSet(a *Agent) {
	if !a.isTeamLead() || a.host.Bounds.NoSpawn {
		return
	}
	if a.depth+1 > maxSpawnDepth(a) {
		a.spawnSet = &spawnSet{} // they are refused before they are searched
		return
	}
	at := loadContext{depth: a.depth + 1, parent: a.modelID(""), member: true, asks: a.escalates()}
	key := spawnSetKey{at: at, in: strings.Join(l.lookIn(a), "\n"), names: "*"}
	if a.Config != nil && a.Config.Team.Spawnable != nil {
		key.names = strings.Join(*a.Config.Team.Spawnable, "/")
	}
	if a.spawnSet = l.spawnSets[key]; a.spawnSet == nil {
		a.spawnSet = &spawnSet{agents: map[string]*Agent{}, faults: map[string]error{}, dirs: agentDirs(l.lookIn(a))}
		l.spawnSets[key] = a.spawnSet
		l.loadSpawnSet(a, at)
	}
	for _, m := range append([]*Agent{a}, a.spawnSet.sortedAgents()...) {
		checkSpawnNames(m, a.spawnSet)
	}
}

// loadSpawnSet loads a spawn set.
func (l *loader) loadSpawnSet(a *Agent, at loadContext) {
	s := a.spawnSet
	for queue := []*Agent{a}; len(queue) > 0; queue = queue[1:] {
		for _, name := range spawnableNames(queue[0], s) {
			if s.dirs[name] == "" || s.agents[name] != nil || s.faults[name] != nil {
				continue
			}
			at.dir = s.dirs[name]
			child, err := l.loadAgent(at)
			if err == nil {
				err = child.checkRunnable()
			}
			// it may still get a model from its lead
			if _, noModel := errors.AsType[*MissingModelError](err); err != nil && !(noModel && at.parent == "") {
				s.faults[name] = spec.Errorf("Agent '%s' failed: %w", name, err)
				continue
			}
			if s.agents[name] = child; child.Config != nil && child.canSpawn() {
				queue = append(queue, child)
			}
		}
	}
}

// spawnableNames returns the agents that a member may spawn, and records those that it
// names.
func spawnableNames(a *Agent, s *spawnSet) []string {
	if a.Config == nil || a.Config.Team.Spawnable == nil {
		return slices.Sorted(maps.Keys(s.dirs))
	}
	for _, name := range *a.Config.Team.Spawnable {
		if s.dirs[name] != "" && !slices.Contains(s.named, name) {
			s.named = append(s.named, name)
		}
	}
	return *a.Config.Team.Spawnable
}

// sortedAgents returns the agents sorted by name.
func (s *spawnSet) sortedAgents() (all []*Agent) {
	for _, name := range slices.Sorted(maps.Keys(s.agents)) {
		all = append(all, s.agents[name])
	}
	return all
}

// agentDirs finds the existing agents. The first directory with a name counts.
func agentDirs(in []string) map[string]string {
	dirs := map[string]string{}
	for _, parent := range in {
		entries, _ := os.ReadDir(parent) // a directory that cannot be read has no agents
		for _, e := range entries {
			dir := filepath.Join(parent, e.Name())
			if dirs[e.Name()] != "" || strings.HasPrefix(e.Name(), ".") || strings.ContainsAny(e.Name(), "#[") {
				continue
			}
			if check.FileExists(filepath.Join(dir, graphFile)) || check.FileExists(filepath.Join(dir, configFile)) {
				dirs[e.Name()] = dir
			}
		}
	}
	return dirs
}

// checkRunnable returns why the agent cannot run, or nil.
func (a *Agent) checkRunnable() error {
	if err := a.ValidationFailure(); err != nil {
		return err
	}
	return a.checkReady()
}

// checkSpawnNames adds findings about names in spawnable_agents that have no effect.
func checkSpawnNames(a *Agent, s *spawnSet) {
	if a.Config == nil || a.Config.Team.Spawnable == nil {
		return
	}
	at := a.Config.Source.ItemPositions("spawnable_agents")
	for i, name := range *a.Config.Team.Spawnable {
		switch err := s.faults[name]; {
		case s.dirs[name] == "":
			addWarning(a, strictyaml.Finding{Code: "spawnable-unknown", Message: fmt.Sprintf("spawnable_agents: there is no agent '%s'", name), Hint: wording.SuggestNearest(name, slices.Sorted(maps.Keys(s.dirs)), "`"), Pos: at(i)})
		case err != nil:
			addWarning(a, strictyaml.Finding{Code: "spawnable-broken", Message: fmt.Sprintf("spawnable_agents: '%s' cannot be spawned: %v", name, err), Pos: at(i)})
		}
	}
}

// addWarning adds a warning, once.
func addWarning(a *Agent, f strictyaml.Finding) {
	f.Severity = strictyaml.SeverityWarning
	f.Class = strictyaml.ClassAdvice
	if !slices.Contains(a.Findings, f) { // it may be a member of several teams
		a.Findings = append(a.Findings, f)
	}
}
