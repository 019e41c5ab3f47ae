package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/agentbundle"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runs"
)

// agentFiles says that a run uses files from the store and not those of the directory that was named.
type agentFiles struct {
	approved []string          // directories whose scripts the user had approved when the run started
	empty    bool              // the working directory of the run is not here: it has an empty one
	homes    map[string]string // directories that the files were packed from, by the directories that they are in
	dirs     []agentbundle.Dir
}

// listBundleDirs returns the directories of the bundle of a run: that of its agent, and those of the agents that its
// files name.
func listBundleDirs(rec *runs.Record) []agentbundle.Dir {
	dirs := []agentbundle.Dir{{Name: filepath.Base(rec.Dir), Path: rec.Dir}}
	for _, s := range rec.Sources {
		if base := filepath.Base(s.Path); !filepath.IsAbs(s.Path) || base != "graph.yaml" && base != "config.yaml" {
			continue
		}
		dir := filepath.Dir(s.Path)
		if slices.ContainsFunc(dirs, func(d agentbundle.Dir) bool { return isInside(dir, d.Path) }) {
			continue
		}
		// it was found next to the agent or among those that are installed, and will be next to it
		name := filepath.Base(dir)
		if rel, err := filepath.Rel(filepath.Dir(rec.Dir), dir); err == nil && filepath.IsLocal(rel) {
			name = filepath.ToSlash(rel)
		}
		dirs = append(dirs, agentbundle.Dir{Name: name, Path: dir})
	}
	return dirs
}

// isInside reports whether a path is a directory or lies in it.
func isInside(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// packAgent returns the bundle of a run's agent. The error names the file that is in the way.
func packAgent(rec *runs.Record) (*agentbundle.Bundle, error) {
	dirs := listBundleDirs(rec)
	b, err := agentbundle.Pack(dirs)
	if err != nil {
		return nil, err
	}
	hashes := map[string]string{}
	for _, f := range b.Files {
		hashes[f.Path] = f.SHA256
	}
	for _, s := range rec.Sources {
		path := s.Path
		if !filepath.IsAbs(path) {
			path = filepath.Join(rec.Dir, filepath.FromSlash(path))
		}
		for _, d := range dirs {
			rel, err := filepath.Rel(d.Path, path)
			if s.Hash == "" || err != nil || !filepath.IsLocal(rel) {
				continue
			}
			hash, there := hashes[d.Name+"/"+filepath.ToSlash(rel)]
			switch {
			case !there:
				return nil, failure.NewInvalid("give it a name without a dot, or remove it from .gitignore and "+agentbundle.IgnoreFile, "the agent uses %s, which is left out of its bundle", path)
			case !strings.HasPrefix(hash, s.Hash):
				return nil, failure.NewStale("try again", "%s was changed at this moment", path)
			}
		}
	}
	return b, nil
}

// Published says what was written to the store.
type Published struct {
	Agent string `json:"agent"`
	Hash  string `json:"hash"`
	Files int    `json:"files"`
	Bytes int64  `json:"bytes"`
	Known bool   `json:"known"` // the store had the bundle already
}

// PublishAgent writes the files of an agent to the store of runs, as a bundle that runs can continue with on another
// machine.
func (p *Process) PublishAgent(ctx context.Context, agent string) (Published, error) {
	a, err := p.Load(LoadRequest{Agent: agent})
	if err != nil {
		return Published{}, err
	}
	defer func() { _ = a.Close() }() // only readers remain
	st, err := p.Runs.OpenStore()
	if err != nil {
		return Published{}, err
	}
	if !st.Location.KeepsRuns() {
		return Published{}, failure.NewUsage("name one that does: RADDLE_STORE=postgres://HOST/NAME, redis://HOST or sqlite:PATH", "the store %s keeps nothing", st.Location.URL())
	}
	rec := &runs.Record{Agent: a.Name, Dir: a.Dir, Recorded: runs.Recorded{Sources: a.Sources()}}
	p.NewLearner()(rec)
	b, err := packAgent(rec)
	if err != nil {
		return Published{}, err
	}
	if err := b.CheckSecrets(p.Tools.SecretSet()); err != nil {
		return Published{}, err
	}
	written, err := b.Put(ctx, st)
	return Published{Agent: a.Name, Hash: b.Hash, Files: len(b.Files), Bytes: b.Bytes(), Known: !written}, err
}

// Describe returns the outcome in words.
func (p Published) Describe() string {
	text := fmt.Sprintf("%s, %d bytes", wording.FormatCount(p.Files, "file"), p.Bytes)
	if p.Known {
		return text + "; the store has them already"
	}
	return text
}

// prepareBundle packs the files of a run's agent for a store that other machines use, and records their hash; the drive
// that starts the run writes them. For another store it records the hash of a bundle that is there. An agent that
// cannot be a bundle runs without one, and the run says so.
func (p *Process) prepareBundle(run *Run, host flow.Host) error {
	st, err := p.Runs.OpenStore()
	if err != nil || !st.Location.KeepsRuns() {
		return err
	}
	ctx := context.Background()
	if !st.Location.IsShared() {
		if any, err := agentbundle.HasAny(ctx, st); err != nil || !any {
			return err
		}
	}
	secrets := p.Tools.SecretSet()
	for _, d := range listBundleDirs(run.Record) {
		p.Tools.AddDotenv(d.Path)
	}
	var fresh bool
	b, refused := packAgent(run.Record)
	if refused == nil {
		var there bool
		there, fresh, err = agentbundle.Has(ctx, st, b.Hash)
		if err != nil || !there && !st.Location.IsShared() {
			return err
		}
		if !there {
			refused = b.CheckSecrets(secrets)
		}
	}
	if refused != nil {
		run.addNotice(p, "other machines can continue this run only with the agent at the same path: "+refused.Error())
		return nil
	}
	run.Record.Bundle = b.Hash
	run.Record.Approved = nil
	for _, d := range listBundleDirs(run.Record) {
		if host.Tooling.TrustsDir(d.Path) {
			run.Record.Approved = append(run.Record.Approved, d.Name)
		}
	}
	if fresh {
		return nil
	}
	run.publish = func(ctx context.Context) error {
		if _, err := b.Put(ctx, st); err != nil {
			return fmt.Errorf("the files of agent '%s' cannot be written to the store: %w", run.Record.Agent, err)
		}
		return nil
	}
	return nil
}

// addNotice adds a line for the person who watches the run, and for the log.
func (r *Run) addNotice(p *Process, text string) {
	r.Notices = append(r.Notices, text)
	if p.Log != nil {
		p.Log.Info(text, "run", r.ID)
	}
}

// isBundled reports whether the directories of a run's agent hold exactly the files that it started with.
func isBundled(rec *runs.Record) bool {
	b, err := packAgent(rec)
	return err == nil && b.Hash == rec.Bundle
}

// listApproved returns the directories of a run's agent whose scripts the user had approved when the run started. They
// count where the same files are, on whatever machine: an approval is one of contents, and the record has their hash.
func listApproved(rec *runs.Record) (dirs []string) {
	if len(rec.Approved) == 0 || !config.IsDir(rec.Dir) || !isBundled(rec) {
		return nil
	}
	for _, d := range listBundleDirs(rec) {
		if slices.Contains(rec.Approved, d.Name) {
			dirs = append(dirs, d.Path)
		}
	}
	return dirs
}

// useBundle makes a run that is continued use the files that it started with, if the agent is not here or has other
// files now, and the store has them. It returns nil if the run uses the files of the agent's directory.
func (p *Process) useBundle(ctx context.Context, st *runs.Store, id string, rec *runs.Record, c ResumeOptions) (*agentFiles, error) {
	if rec.Bundle == "" || c.Agent != "" {
		return nil, nil
	}
	if config.IsDir(rec.Dir) && (c.AcceptChanges || isBundled(rec)) {
		return nil, nil
	}
	dir, err := agentbundle.Open(ctx, st, rec.Bundle, p.Dirs.Cache)
	if errors.Is(err, agentbundle.ErrMissing) {
		return nil, nil // the directory decides, as without a bundle
	}
	if _, damaged := errors.AsType[*agentbundle.DamagedError](err); damaged {
		return nil, &failure.Error{
			Kind: failure.Stale,
			Err:  err,
			Next: "raddle store check says more. With the agent's directory on this machine: --agent PATH",
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the files of agent '%s' cannot be read from the store: %w", rec.Agent, err)
	}
	files := &agentFiles{homes: map[string]string{}, dirs: listBundleDirs(rec)}
	root := filepath.Dir(dir)
	p.Tools.SecretSet() // AddDotenv needs it
	for _, d := range files.dirs {
		in := filepath.Join(root, filepath.FromSlash(d.Name))
		if slices.Contains(rec.Approved, d.Name) {
			files.approved = append(files.approved, in)
		}
		if config.IsDir(d.Path) {
			files.homes[in] = d.Path
			p.Tools.AddDotenv(d.Path)
		}
	}
	rec.Dir = dir
	if files.empty = !config.IsDir(rec.Workspace); files.empty {
		rec.Workspace = filepath.Join(p.Dirs.State, "workspaces", id)
		err = os.MkdirAll(rec.Workspace, 0o700)
	}
	return files, err
}

// describeChanges returns what has changed in the files of a run since it started. Files from the store cannot change.
func (f *agentFiles) describeChanges(rec *runs.Record, agent *flow.Agent) []string {
	if f == nil {
		return flow.DescribeChanges(rec.Sources, agent.Sources())
	}
	var in []string
	for _, d := range f.dirs {
		in = append(in, d.Path)
	}
	was := listOutside(rec.Sources, in)
	is := listOutside(agent.Sources(), []string{filepath.Dir(agent.Dir)})
	return flow.DescribeChanges(was, is)
}

// describeChoice says how to continue with the files of the directory instead, if it is on this machine.
func (f *agentFiles) describeChoice() string {
	if !config.IsDir(f.dirs[0].Path) {
		return ""
	}
	return "; to continue with its files as they are now: --accept-changes"
}

// listOutside returns the sources that are in none of the directories, such as tools that every agent may use, by their
// names: on another machine they may be elsewhere.
func listOutside(list []flow.Source, dirs []string) (outside []flow.Source) {
	for _, s := range list {
		if filepath.IsAbs(s.Path) && !slices.ContainsFunc(dirs, func(dir string) bool { return isInside(s.Path, dir) }) {
			s.Path = filepath.Base(s.Path)
			outside = append(outside, s)
		}
	}
	return outside
}
