package app

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"

	"raddle.dev/flow"
	"raddle.dev/graph"
	"raddle.dev/internal/base/redact"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/runs"
	"raddle.dev/tool/permission"
)

// A RecordedAgent is the agent of a run as it was when the run started.
type RecordedAgent struct {
	*flow.Agent
	remove func() // removes the files that were written for it
}

// Close closes the agent and removes what was written for it.
func (a *RecordedAgent) Close() error {
	defer a.remove()
	return a.Agent.Close()
}

// LoadOfRun loads the agent of a run as it was when the run started, or when a resume accepted its changes: from its
// directory if nothing in it has changed, otherwise from the bundle of the run, otherwise from the definitions in its
// start record, with those other files that are as they were. It calls no model and needs no key. foreign says that the
// run came from elsewhere: then its record does not choose which files of this machine are read.
func (p *Process) LoadOfRun(ctx context.Context, rec *runs.Record, foreign bool) (*RecordedAgent, error) {
	a := &RecordedAgent{remove: func() {}}
	then := *rec
	then.Workspace = p.Dirs.Work
	then.Named = ""
	dir := rec.Dir
	dirs := p.agentDirs()
	if foreign || flow.DescribeChanges(rec.Sources, flow.HashSources(rec.Dir, rec.Sources)) != nil {
		dirs = flow.AgentDirs{} // an agent that was not named then is not part of the run
		var err error
		if dir, err = openBundleOf(ctx, p, rec); err != nil {
			if dir, a.remove, err = restoreSources(rec, foreign); err != nil {
				return nil, err
			}
		}
		then.Dir = dir
	}
	host, err := p.newHost(&then, UIHooks{Mode: permission.NewModeSwitch(permission.ModeEdits), unnamed: true})
	if err == nil {
		host.AgentDirs = dirs
		a.Agent, err = flow.Load(dir, host)
	}
	if err != nil {
		a.remove()
		return nil, err
	}
	return a, nil
}

// openBundleOf returns the directory of a run's agent in its bundle.
func openBundleOf(ctx context.Context, p *Process, rec *runs.Record) (string, error) {
	if rec.Bundle == "" {
		return "", agentbundle.ErrMissing
	}
	st, err := p.Runs.OpenStore()
	if err != nil {
		return "", err
	}
	return agentbundle.Open(ctx, st, rec.Bundle, p.Dirs.Cache)
}

// restoreSources writes the definitions in a start record, and the other files that are as they were, to a temporary
// directory. Other scripts are empty there: nothing runs them.
func restoreSources(rec *runs.Record, foreign bool) (dir string, remove func(), err error) {
	root, remove, err := tempdir.New("recorded-*")
	if err != nil {
		return "", nil, err
	}
	places, dir := LayOutSources(rec, root)
	for i, s := range rec.Sources {
		if places[i].To == "" {
			continue // it belongs to no agent
		}
		text, known := DefinitionOf(rec, i)
		if !known && !foreign {
			if read, hash, err := flow.ReadSource(places[i].From); err == nil && hash == s.Hash {
				text = string(read)
			}
		}
		if err = os.MkdirAll(filepath.Dir(places[i].To), 0o700); err == nil {
			err = os.WriteFile(places[i].To, []byte(text), 0o600)
		}
		if err != nil {
			remove()
			return "", nil, err
		}
	}
	return dir, remove, nil
}

// DefinitionOf returns the text of the source with an index if a start record has it: that of the agent, or of one
// below it.
func DefinitionOf(rec *runs.Record, i int) (text string, known bool) {
	if i == 0 {
		return rec.Definition, true
	}
	text, known = rec.Definitions[rec.Sources[i].Path]
	return text, known
}

// A SourcePlace says where a file was, where it goes, and which agent it belongs to.
type SourcePlace struct {
	From, To string // To is "" if it belongs to no agent
	Agent    string
	Path     string // in the directory of the agent, with slashes
}

// LayOutSources returns where the files of a run go below another directory, one for each source, and the directory of
// its agent there. Agents that are next to each other or far from each other are next to each other there.
func LayOutSources(rec *runs.Record, root string) (places []SourcePlace, dir string) {
	dirs := ListSourceDirs(rec)
	for _, s := range rec.Sources {
		p := SourcePlace{From: s.Path}
		if !filepath.IsAbs(s.Path) {
			p.From = filepath.Join(rec.Dir, filepath.FromSlash(s.Path))
		}
		inner := ""
		for _, in := range dirs {
			if rel, err := filepath.Rel(in, p.From); err == nil && filepath.IsLocal(rel) && len(in) > len(inner) {
				inner = in
				p.Agent = filepath.Base(in)
				p.Path = filepath.ToSlash(rel)
				p.To = filepath.Join(root, filepath.Base(in), rel)
			}
		}
		places = append(places, p)
	}
	return places, filepath.Join(root, filepath.Base(rec.Dir))
}

// ListSourceDirs returns the directories of a run's agent and of the agents that its files name, which may be anywhere.
func ListSourceDirs(rec *runs.Record) []string {
	dirs := []string{rec.Dir}
	for _, s := range rec.Sources {
		if base := filepath.Base(s.Path); filepath.IsAbs(s.Path) && (base == "graph.yaml" || base == "config.yaml") {
			dirs = append(dirs, filepath.Dir(s.Path))
		}
	}
	return dirs
}

// maxPicture is the size in bytes of the largest picture in a start record.
const maxPicture = 64 << 10

// recordAgent sets what the start record of a run says about its agent: the files, the texts of the definitions, and
// the picture, which a later change of a file cannot change. A picture that is too large is left out: the definitions
// are there.
func recordAgent(rec *runs.Record, a *flow.Agent) {
	rec.Sources, rec.Definition, rec.Definitions = a.Sources(), a.Definition(), flow.ChildDefinitions(a)
	picture := a.Picture()
	rec.Picture = &picture
	if b, err := json.Marshal(picture); err != nil || len(b) > maxPicture {
		rec.Picture = nil
	}
}

// acceptedRecord returns the start record of a run that continues with changed files: with the agent as it is now.
func acceptedRecord(meta []byte, a *flow.Agent, secrets *redact.Set) ([]byte, error) {
	rec, err := runs.DecodeRecord(meta)
	if err != nil {
		return nil, err
	}
	recordAgent(rec, a)
	// They are about the files before.
	rec.Bundle = ""
	rec.Approved = nil
	rec.Definition, rec.Definitions = secrets.Text(rec.Definition), redactValues(secrets, rec.Definitions)
	return json.Marshal(rec)
}

// PictureOfRun returns the picture of a run's agent as the start record has it, or as the recorded definitions give it.
// The error says that the record has neither.
func PictureOfRun(ctx context.Context, p *Process, rec *runs.Record, foreign bool) (graph.Structure, error) {
	if rec.Picture != nil {
		return *rec.Picture, nil
	}
	a, err := p.LoadOfRun(ctx, rec, foreign)
	if err != nil {
		return graph.Structure{}, err
	}
	defer func() { _ = a.Close() }() // only readers remain
	return a.Picture(), nil
}
