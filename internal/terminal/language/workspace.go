package language

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/process/agentcheck"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/proving/testrun"
)

const (
	graphFile  = "graph.yaml"
	configFile = "config.yaml"
	testSuffix = testcase.Suffix
)

// Document is a file that an editor has open.
type Document struct {
	URI     string
	Path    string
	Version int
	Text    *Text
}

// Workspace is what an editor has open, and the agents to which that belongs. It starts no programs and connects to
// nothing. It is not safe for concurrent use.
type Workspace struct {
	p      *app.Process
	docs   map[string]*Document // by path
	agents map[string]*agentView
	stale  map[string]bool // directories of agents that need a check

}

// agentView is what is known about an agent.
type agentView struct {
	dir      string
	found    map[string][]strictyaml.Finding // by the path of the file, of the last check
	uses     []string                        // directories of the agents that it runs, and its own
	loaded   *flow.Agent                     // nil: its file has errors
	lastFile *spec.File                      // the last one without errors of its form; nil: none
	lastTool *flow.Agent
	lastText *Text // of graph.yaml, of that time; nil: none
}

// New returns an empty workspace of a process.
func New(p *app.Process) *Workspace {
	return &Workspace{p: p, docs: map[string]*Document{}, agents: map[string]*agentView{}, stale: map[string]bool{}}
}

// FindDocument returns the open document at an address of the protocol, or nil.
func (w *Workspace) FindDocument(uri string) *Document {
	path, ok := PathOf(uri)
	if !ok {
		return nil
	}
	return w.docs[path]
}

// OpenDocument adds a document. Documents that are no files are ignored.
func (w *Workspace) OpenDocument(uri string, version int, text string) {
	if path, ok := PathOf(uri); ok {
		w.docs[path] = &Document{uri, path, version, NewText(text)}
		w.markStale(path)
	}
}

// A Change replaces a range of a document; without a range, all of it.
type Change struct {
	Range *Range `json:"range"`
	Text  string `json:"text"`
}

// ChangeDocument changes a document by changes in their order.
func (w *Workspace) ChangeDocument(uri string, version int, changes []Change) {
	d := w.FindDocument(uri)
	if d == nil {
		return
	}
	text := d.Text
	for _, c := range changes {
		if c.Range == nil {
			text = NewText(c.Text)
		} else {
			text = text.ReplaceRange(*c.Range, c.Text)
		}
	}
	w.docs[d.Path] = &Document{d.URI, d.Path, version, text}
	w.markStale(d.Path)
}

// CloseDocument forgets a document: its file counts again.
func (w *Workspace) CloseDocument(uri string) {
	if d := w.FindDocument(uri); d != nil {
		w.markStale(d.Path)
		delete(w.docs, d.Path)
	}
}

// TouchFile says that a file has changed outside of the editor.
func (w *Workspace) TouchFile(uri string) {
	if path, ok := PathOf(uri); ok {
		w.markStale(path)
	}
}

// markStale marks the agents for a check to which a file belongs, and those that run them.
func (w *Workspace) markStale(path string) {
	dir := w.agentDir(path)
	if dir == "" {
		return
	}
	w.stale[dir] = true
	for other, a := range w.agents {
		if slices.Contains(a.uses, dir) {
			w.stale[other] = true
		}
	}
}

// deepestFile is how many directories a file of an agent may lie below the agent's own.
const deepestFile = 4

// agentDir returns the directory of the agent to which a file belongs, or "".
func (w *Workspace) agentDir(path string) string {
	dir := filepath.Dir(path)
	switch base := filepath.Base(path); {
	case dir == w.p.Dirs.Config:
		return ""
	case base == graphFile || base == configFile:
		return dir
	}
	for range deepestFile {
		if w.hasFile(filepath.Join(dir, graphFile)) || w.hasFile(filepath.Join(dir, configFile)) && dir != w.p.Dirs.Config {
			return dir
		}
		dir = filepath.Dir(dir)
	}
	return ""
}

// hasFile reports whether a file is open or exists.
func (w *Workspace) hasFile(path string) bool {
	if w.docs[path] != nil {
		return true
	}
	info, err := os.Lstat(path)
	return err == nil && info.Mode().IsRegular()
}

// collectTexts returns the texts of all open documents by path.
func (w *Workspace) collectTexts() map[string][]byte {
	texts := make(map[string][]byte, len(w.docs))
	for path, d := range w.docs {
		texts[path] = []byte(d.Text.s)
	}
	return texts
}

// definition returns the path of the file that defines the agent of a directory.
func (w *Workspace) definition(dir string) string {
	if path := filepath.Join(dir, configFile); !w.hasFile(filepath.Join(dir, graphFile)) && w.hasFile(path) {
		return path
	}
	return filepath.Join(dir, graphFile)
}

// CheckStale checks the agents whose files have changed since the last call, and returns the diagnostics of all documents
// that they are about.
func (w *Workspace) CheckStale(ctx context.Context) []Published {
	affected := map[string]bool{}
	for _, dir := range slices.Sorted(maps.Keys(w.stale)) {
		delete(w.stale, dir)
		old := w.agents[dir]
		if old != nil {
			for path := range old.found {
				affected[path] = true
			}
		}
		if !w.isOpen(dir) {
			delete(w.agents, dir)
			continue
		}
		a := w.checkAgent(ctx, dir, old)
		w.agents[dir] = a
		for path := range a.found {
			affected[path] = true
		}
		for path := range w.docs {
			if w.agentDir(path) == dir {
				affected[path] = true
			}
		}
	}
	list := make([]Published, 0, len(affected))
	for _, path := range slices.Sorted(maps.Keys(affected)) {
		list = append(list, w.publishFile(path))
	}
	return list
}

// isOpen reports whether a document of an agent's directory is open.
func (w *Workspace) isOpen(dir string) bool {
	for path := range w.docs {
		if w.agentDir(path) == dir {
			return true
		}
	}
	return false
}

// checkAgent checks an agent and its open test files.
func (w *Workspace) checkAgent(ctx context.Context, dir string, old *agentView) *agentView {
	a := &agentView{dir: dir, found: map[string][]strictyaml.Finding{}, uses: []string{dir}}
	if old != nil {
		a.lastFile, a.lastTool, a.lastText = old.lastFile, old.lastTool, old.lastText
	}
	add := func(list []strictyaml.Finding) {
		for _, f := range list {
			if f.Pos.File == "" {
				f.Pos.File = w.definition(dir)
			}
			a.found[f.Pos.File] = append(a.found[f.Pos.File], f)
		}
	}
	report := agentcheck.Check(ctx, w.p, app.Place{Name: filepath.Base(dir), Dir: dir}, agentcheck.Options{Unsaved: w.collectTexts()})
	add(report.Findings)
	if report.Err != nil && len(report.Findings) == 0 {
		add([]strictyaml.Finding{{Severity: strictyaml.SeverityError, Code: "not-loaded", Message: report.Error}})
	}
	if a.loaded = report.Loaded; a.loaded != nil {
		a.lastTool = a.loaded
		if a.lastFile = a.loaded.File; a.lastFile != nil {
			a.lastText = w.readText(a.lastFile.Path)
		}
		for _, child := range a.loaded.Agents()[1:] {
			a.uses = append(a.uses, child.Dir)
		}
	}
	for path, d := range w.docs {
		if filepath.Dir(path) == dir && strings.HasSuffix(path, testSuffix) {
			add(checkTests(d, a.loaded))
		}
	}
	return a
}

// checkTests returns what is wrong with a file of test cases of an agent, which is nil if it cannot be loaded.
func checkTests(d *Document, a *flow.Agent) (found []strictyaml.Finding) {
	file, err := testcase.Read(d.Path, []byte(d.Text.s))
	if broken, is := errors.AsType[*strictyaml.FileError](err); is {
		return broken.Findings
	}
	if err != nil || a == nil {
		return nil
	}
	for _, c := range file.Cases {
		for _, f := range testrun.CheckNames(a, c) {
			f.Pos.File = d.Path
			found = append(found, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "test-name", Message: f.What + ": " + f.Message, Pos: f.Pos})
		}
	}
	return found
}

// publishFile returns the diagnostics of a file, of all agents that have findings there, each once.
func (w *Workspace) publishFile(path string) Published {
	p := Published{URI: AddressOf(path), Diagnostics: []Diagnostic{}}
	text := w.readText(path)
	if d := w.docs[path]; d != nil {
		p.URI = d.URI
		p.Version = new(d.Version)
	}
	for _, dir := range slices.Sorted(maps.Keys(w.agents)) {
		for _, f := range w.agents[dir].found[path] {
			d := describeFinding(text, f)
			if !slices.ContainsFunc(p.Diagnostics, func(o Diagnostic) bool { return o.Range == d.Range && o.Message == d.Message }) {
				p.Diagnostics = append(p.Diagnostics, d)
			}
		}
	}
	return p
}

// readText returns the text of a file as the editor has it, otherwise as it is stored, or an empty text.
func (w *Workspace) readText(path string) *Text {
	if d := w.docs[path]; d != nil {
		return d.Text
	}
	text, err := plainfile.Read(path, strictyaml.MaxFileSize)
	if err != nil {
		return NewText("")
	}
	return NewText(string(text))
}

// readInside is readText for a file that must lie beneath an agent's directory.
func (w *Workspace) readInside(dir, name string) (string, *Text, bool) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, name)
	}
	if d := w.docs[path]; d != nil {
		return path, d.Text, true
	}
	text, err := plainfile.ReadBeneath(dir, name, strictyaml.MaxFileSize)
	if err != nil {
		return path, nil, false
	}
	return path, NewText(string(text)), true
}

// severities are the numbers of the protocol.
var severities = map[strictyaml.Severity]int{strictyaml.SeverityError: 1, strictyaml.SeverityWarning: 2, strictyaml.SeverityInfo: 3}

// describeFinding returns a finding as a diagnostic.
func describeFinding(text *Text, f strictyaml.Finding) Diagnostic {
	from := text.findPlace(f.Pos)
	to := endOfWord(text.s, from)
	if f.Pos.Line == 0 {
		from, to = 0, 0
	}
	d := Diagnostic{Range: text.rangeOf(from, to), Severity: severities[f.Severity], Code: f.Code, Source: "raddle", Message: f.Text()}
	hint := f.Hint
	if hint == "" {
		hint = f.Fix
	}
	if hint != "" {
		d.Message += "\n" + hint
	}
	if m := suggestion().FindStringSubmatch(hint); m != nil {
		d.Data = &FixData{Replace: m[1]}
	}
	return d
}

// endOfWord returns the end of what a finding at an index is about: a placeholder, a quoted text, or a word.
func endOfWord(s string, from int) int {
	if from >= len(s) {
		return len(s)
	}
	rest := s[from:]
	line := rest
	if i := strings.IndexAny(rest, "\r\n"); i >= 0 {
		line = rest[:i]
	}
	switch {
	case strings.HasPrefix(line, "{{"):
		if end := strings.Index(line, "}}"); end > 0 {
			return from + end + 2
		}
	case line != "" && (line[0] == '"' || line[0] == '\''):
		end, _ := strictyaml.FindEndOfQuotes(s, from)
		return min(end, from+len(line))
	}
	for _, end := range []string{": ", " #", ", ", "}", "]"} {
		if i := strings.Index(line, end); i > 0 {
			line = line[:i]
		}
	}
	return from + len(strings.TrimRight(strings.TrimSuffix(strings.TrimRight(line, " "), ":"), " "))
}

// listFiles returns the names of files of a directory beneath an agent's, with a slash after directories.
func listFiles(dir string) (names []string) {
	_ = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(dir, path)
		switch {
		case err != nil || relErr != nil || rel == ".":
			return nil
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" || strings.Count(rel, string(filepath.Separator)) >= deepestFile):
			return filepath.SkipDir
		case len(names) >= maxProposals:
			return filepath.SkipAll
		case e.Type().IsRegular():
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names
}

// maxProposals is how many files or names are proposed.
const maxProposals = 500
