package flow

import (
	"fmt"
	"path/filepath"

	"raddle.dev/flow/spec"
	"raddle.dev/internal/strictyaml"
	"raddle.dev/rag"
)

// loadConfig reads a config.yaml into the agent.
func (l *loader) loadConfig(a *Agent, text []byte) (err error) {
	path := filepath.Join(a.Dir, configFile)
	if a.Config, err = spec.ParseConfig(path, text); err != nil {
		return spec.Failf("Failed to load agent config at '%s': %w", path, err)
	}
	applyEnvironment(a.Config, a.Name, l.host.getenv)
	h := a.host
	if id := a.Config.Sampling.Model; id != "" && h.Override == "" && h.Models != nil && !h.Offline && !h.Models.IsKnown(a.Dir, id) {
		return spec.Failf("Failed to load agent config at '%s': %s", path, h.unknownModel(id))
	}
	if h.NoSpawn {
		return spec.Failf("Please enable function calling support before using the agent.")
	}
	if err := openTools(a, a.Config.GlobalTools, a.Config.MCPServers); err != nil {
		return err
	}
	l.agents[a.loadContext] = a
	a.Findings = append(append([]strictyaml.Finding(nil), a.Config.Findings...), toolFindings(a)...)
	if id := a.Config.Team.SummaryModel; id != "" && h.Override == "" && h.Models != nil && !h.Offline && !h.Models.IsKnown(a.Dir, id) {
		addWarning(a, strictyaml.Finding{Code: "summary-model", Message: fmt.Sprintf("summarization_model: unknown chat model '%s'; long outputs of agents will be cut", id), Pos: a.At("summarization_model")})
	}
	if id := a.Config.Documents.Model; id != "" && id != rag.Keyword && h.Models != nil && !h.Offline && !h.Models.IsKnown(a.Dir, id) {
		addWarning(a, strictyaml.Finding{Code: "embedding-model", Message: fmt.Sprintf("embedding_model: unknown model '%s'; the documents cannot be searched", id), Hint: "name CLIENT:MODEL, or `keyword` to search by words alone", Pos: a.At("embedding_model")})
	}
	adviseDocuments(a)
	if a.Config.Team.Spawnable != nil && !a.Config.Team.CanSpawn {
		addWarning(a, strictyaml.Finding{Code: "spawnable-unused", Message: "spawnable_agents has no effect", Hint: "add `can_spawn_agents: true`", Pos: a.At("spawnable_agents")})
	}
	l.resolveSpawnSet(a)
	if h.Strict {
		a.Findings = strictyaml.PromoteUnknownKeys(a.Findings)
	}
	return nil
}

// variableValues returns the agent's variables that have a value.
func variableValues(a *Agent) map[string]string {
	values := map[string]string{}
	for _, v := range a.Variables() {
		if s, ok := a.host.Variables[v.Name]; ok || v.Default != nil {
			if !ok {
				s = *v.Default
			}
			values[v.Name] = s
		}
	}
	return values
}
