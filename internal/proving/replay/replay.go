package replay

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/agent"
	"raddle.dev/flow"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/tempdir"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/runfile"
)

// Job says what to replay.
type Job struct {
	Recording *Recording
	Agent     string   // directory of the agent; "": where it was, or the files of the recording
	Until     string   // node before which the replay ends; "": none
	Environ   []string // of the agent; nil: that of this process
}

// Result is how a replay ended.
type Result struct {
	Run        string      `json:"run"`
	Agent      string      `json:"agent"`
	Directory  string      `json:"directory"` // of the agent; empty: the files of the recording
	Steps      int         `json:"steps"`
	Effects    int         `json:"effects"` // that were answered by the recording
	Changes    []string    `json:"changes"` // of files since the run was recorded
	Ended      string      `json:"ended,omitempty"`
	Notes      []string    `json:"notes"`
	Difference *Difference `json:"difference,omitempty"`

	// for NewCase and NewLive
	base     *trace
	trace    *trace
	names    func(path string) (name string, index int)
	answered []answered
	path     []string // nodes of the graph itself that have run
}

// Execute replays a run.
func Execute(ctx context.Context, j Job) (*Result, error) {
	// The time of the day in instructions may have passed a second between the two executions, and the agents of a team
	// work at the same time: what differs only once was not recorded otherwise.
	for try := 1; ; try++ {
		res, err := j.execute(ctx)
		if err != nil || res.Difference == nil || try == maxTries || res.Difference.What != "instructions" && !j.Recording.hasTeam() {
			return res, err
		}
	}
}

// maxTries limits how often a replay is repeated whose result depends on time.
const maxTries = 3

// hasTeam reports whether agents worked at the same time in the recorded run.
func (r *Recording) hasTeam() bool {
	return slices.ContainsFunc(r.segments, func(s *segment) bool { return s.team })
}

func (j *Job) execute(ctx context.Context) (*Result, error) {
	if len(j.Recording.segments) == 0 {
		return nil, errEmpty
	}
	if j.Environ == nil {
		j.Environ = os.Environ()
	}
	res := &Result{Run: j.Recording.Run, Changes: []string{}, Notes: []string{}}
	recorded, remove, err := j.Recording.restoreFiles(res)
	if err != nil {
		return nil, err
	}
	defer remove()
	dir := j.Agent
	if dir == "" && config.IsDir(j.Recording.Record.Dir) {
		dir = j.Recording.Record.Dir
	}
	res.Directory = dir
	var base *trace
	if recorded != "" {
		was, err := j.play(ctx, recorded, nil)
		switch {
		case err != nil && dir == "":
			return nil, err
		case err != nil:
			res.Notes = append(res.Notes, fmt.Sprintf("prompts and inputs cannot be compared: the recorded files of the agent cannot be loaded: %v", err))
		case was.player.diff != nil && dir != "":
			res.Notes = append(res.Notes, fmt.Sprintf("prompts and inputs are compared only up to a place that the recorded files do not repeat: %v", was.player.diff))
		}
		if err == nil {
			base = was.player.trace
		}
	}
	if dir == "" {
		dir = recorded
		res.Notes = append(res.Notes, "the agent is not on this machine: its files are those of the export; name its directory with --agent")
	}
	is, err := j.play(ctx, dir, base)
	if err != nil {
		return nil, err
	}
	p := is.player
	res.Agent = is.agent
	res.Steps = is.steps
	res.Effects = p.used
	res.Ended = p.ended
	res.Difference = p.diff
	res.trace = p.trace
	res.names = is.names
	res.answered = p.given
	res.path = is.path
	res.base = base
	if res.Directory != "" {
		res.Changes = append(res.Changes, is.changes...)
	}
	return res, nil
}

// play executes the recording with the files of a directory.
func (j *Job) play(ctx context.Context, dir string, base *trace) (*execution, error) {
	x := &execution{recording: j.Recording, dir: dir, environ: j.Environ, player: &player{until: j.Until, base: base, trace: newTrace(), servers: j.Recording.serverTools(), searches: j.Recording.searches()}}
	return x, x.run(ctx)
}

// serverTools returns the names of the tools of MCP servers that the recorded run has called.
func (r *Recording) serverTools() (names []string) {
	for _, s := range r.segments {
		for _, e := range s.effects {
			if name, ok := agent.ToolOfEffect(e.name); ok && strings.HasPrefix(name, "mcp_") {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// searches reports whether the recorded run has searched the documents of an agent before it asked its model.
func (r *Recording) searches() bool {
	return slices.ContainsFunc(r.segments, func(s *segment) bool {
		for _, e := range s.effects {
			if e.name == "search" {
				return true
			}
		}
		return false
	})
}

// restoreFiles writes the files of the agent, as they were when the run was recorded, to a temporary directory. What is
// not known is taken from the agent as it is now; scripts that are missing are empty, because they are not run.
func (r *Recording) restoreFiles(res *Result) (dir string, remove func(), err error) {
	root, remove, err := tempdir.New("replay-*")
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			remove()
		}
	}()
	rec := r.Record
	for _, from := range app.ListSourceDirs(rec) {
		if err := copyAgent(from, filepath.Join(root, filepath.Base(from))); err != nil {
			return "", nil, err
		}
	}
	places, dir := app.LayOutSources(rec, root)
	for i, s := range rec.Sources {
		p := places[i]
		if p.To == "" {
			continue // a global tool
		}
		text, known := r.sourceText(i, p)
		if !known {
			res.Notes = append(res.Notes, s.Path+" is not known as it was then: it counts as it is now")
			if config.IsFile(p.From) {
				continue
			}
		}
		if err := replaceFile(p.To, text); err != nil {
			return "", nil, err
		}
	}
	return dir, remove, nil
}

// sourceText returns the text of a source when the run was recorded.
func (r *Recording) sourceText(i int, p app.SourcePlace) (text []byte, known bool) {
	if text, ok := app.DefinitionOf(r.Record, i); ok {
		return []byte(text), true
	}
	at := slices.IndexFunc(r.files, func(f runfile.AgentFile) bool { return f.Agent == p.Agent && f.Path == p.Path })
	if at >= 0 && !r.files[at].Changed {
		return []byte(r.files[at].Text), true
	}
	text, hash, err := flow.ReadSource(p.From)
	if err == nil && hash == r.Record.Sources[i].Hash {
		return text, true
	}
	if ext := filepath.Ext(p.From); !slices.Contains(toolFiles, filepath.Base(p.From)) && (ext == ".sh" || ext == ".py" || ext == ".ts") {
		return nil, true // a script, which is not run
	}
	if at >= 0 {
		return []byte(r.files[at].Text), false
	}
	return nil, false
}

// toolFiles are the names of files from which tools are read.
var toolFiles = []string{"tools.sh", "tools.py", "tools.ts"}

// maxCopied limits the files of an agent that are linked to the copy.
const maxCopied = 5000

// maxCopiedFile is the size in bytes of the largest file that is read for the copy.
const maxCopiedFile = 64 << 20

// copyAgent makes a directory that has the files of another one as links, without hidden files.
func copyAgent(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil || !config.IsDir(from) {
		return err
	}
	n := 0
	return filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		rel, relErr := filepath.Rel(from, path)
		switch {
		case err != nil || relErr != nil || rel == ".":
			return nil
		case strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules":
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		case e.IsDir():
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		if n++; n > maxCopied {
			return filepath.SkipAll
		}
		if os.Symlink(path, filepath.Join(to, rel)) == nil {
			return nil
		}
		text, err := plainfile.Read(path, maxCopiedFile)
		if err != nil {
			return nil
		}
		return os.WriteFile(filepath.Join(to, rel), text, 0o600)
	})
}

// replaceFile writes a file that may be a link to another.
func replaceFile(path string, text []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.WriteFile(path, text, 0o600)
}
