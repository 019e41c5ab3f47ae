package moving

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/config"
)

// A Program is a program from which raddle can take things.
type Program struct {
	Name  string // as a person types it
	Title string // as a person reads it

	variable string   // that may name its directory
	homes    []string // its directory, relative to the home directory of the user; the first that exists counts
	beside   string   // a file beside the directory that is read, too; "": none
	read     func(r *reader)
}

// A reader reads one program.
type reader struct {
	*source
	dirs config.Dirs
}

// Programs are the programs, in the order in which they are looked for. It is a function, because the rows name
// functions that read the table of tools.
func Programs() []Program {
	return []Program{
		{Name: "coyote", Title: "Coyote", variable: "COYOTE_CONFIG_DIR", homes: []string{".config/coyote", "Library/Application Support/coyote"}, read: readLoki},
		{Name: "loki", Title: "Loki", variable: "LOKI_CONFIG_DIR", homes: []string{".config/loki", "Library/Application Support/loki"}, read: readLoki},
		{Name: "aichat", Title: "aichat", variable: "AICHAT_CONFIG_DIR", homes: []string{".config/aichat", "Library/Application Support/aichat"}, read: readLoki},
		{Name: "claude", Title: "Claude Code", variable: "CLAUDE_CONFIG_DIR", homes: []string{".claude"}, beside: ".claude.json", read: readClaude},
		{Name: "codex", Title: "Codex", variable: "CODEX_HOME", homes: []string{".codex"}, read: readCodex},
		{Name: "gemini", Title: "gemini-cli", homes: []string{".gemini"}, read: readGemini},
		{Name: "opencode", Title: "opencode", variable: "OPENCODE_CONFIG_DIR", homes: []string{".config/opencode"}, read: readOpencode},
		{Name: "crush", Title: "crush", homes: []string{".config/crush"}, read: readCrush},
		{Name: "goose", Title: "goose", homes: []string{".config/goose"}, read: readGoose},
	}
}

// FindProgram returns the program that a person names.
func FindProgram(name string) (Program, error) {
	var names []string
	for _, p := range Programs() {
		if p.Name == strings.ToLower(name) || strings.EqualFold(p.Title, name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	next := cmp.Or(wording.SuggestNearest(name, names, ""), "use one of "+strings.Join(names, ", "))
	return Program{}, failure.NewUsage(next, "raddle cannot import from %q", name)
}

// FindHome returns the directory of the program, "" if it has none here.
func (p Program) FindHome(dirs config.Dirs, env environ.Environ) string {
	candidates := []string{}
	if named := env.Get(p.variable); p.variable != "" && named != "" {
		candidates = append(candidates, dirs.AbsPath(named))
	}
	for _, home := range p.homes {
		if rest, ok := strings.CutPrefix(home, ".config/"); ok && filepath.IsAbs(env.Get("XDG_CONFIG_HOME")) {
			candidates = append(candidates, filepath.Join(env.Get("XDG_CONFIG_HOME"), rest))
		}
		if dirs.Home != "" {
			candidates = append(candidates, filepath.Join(dirs.Home, filepath.FromSlash(home)))
		}
	}
	for _, dir := range candidates {
		if config.IsDir(dir) {
			return dir
		}
	}
	return ""
}

// A Request says what to import.
type Request struct {
	Programs []Program // nil: all that have a directory here
	From     string    // the directory of the only program; "": where it is by itself
	Replace  bool      // take what raddle has under the same name
}

// Find reads programs and returns the plan. The error says that there is nothing to read.
func Find(t *Target, req Request) (*Plan, error) {
	all := req.Programs
	if all == nil {
		all = Programs()
	}
	plan := &Plan{}
	found := false
	for _, p := range all {
		home := req.From
		if home == "" {
			home = p.FindHome(t.Dirs, t.Environ)
		}
		if home == "" || !config.IsDir(home) {
			continue
		}
		found = true
		s := p.readHome(t.Dirs, home)
		sortThings(s.things)
		plan.Things = append(plan.Things, s.things...)
		plan.Keys = append(plan.Keys, s.keys...)
	}
	if !found {
		return nil, notFound(req)
	}
	plan.settleAll(t, req.Replace)
	return plan, nil
}

// notFound returns the error for programs that have no directory.
func notFound(req Request) error {
	const next = "name its directory: raddle import PROGRAM --from DIR"
	switch {
	case req.From != "":
		return failure.NewUsage("name the directory of the program's configuration", "there is no directory %s", req.From)
	case len(req.Programs) == 1:
		return failure.NewUsage(next, "%s has no configuration here", req.Programs[0].Title)
	}
	var titles []string
	for _, p := range Programs() {
		titles = append(titles, p.Title)
	}
	return failure.NewUsage(next, "there is no configuration of another program here: %s were looked for", strings.Join(titles, ", "))
}

// readHome reads the home of a program.
func (p Program) readHome(dirs config.Dirs, home string) *source {
	if real, err := filepath.EvalSymlinks(home); err == nil {
		home = real
	}
	s := &source{program: p.Name, root: home}
	r := &reader{source: s, dirs: dirs}
	p.read(r)
	if p.beside != "" {
		r.readBeside(filepath.Join(filepath.Dir(home), p.beside))
	}
	s.nameLogins()
	for i := range s.things {
		s.things[i].From = dirs.ShortPath(filepath.Join(home, s.things[i].From))
		if strings.HasPrefix(s.things[i].To, string(filepath.Separator)) {
			s.things[i].To = dirs.ShortPath(s.things[i].To)
		}
	}
	return s
}

// nameLogins adds the files with logins, which are never opened.
func (s *source) nameLogins() {
	entries, _ := os.ReadDir(s.root)
	for _, e := range entries {
		if isLogin(e.Name()) {
			s.leaveThing(kindKey, e.Name(), e.Name(), "logins of other programs are never read; log in: raddle login PROVIDER")
		}
	}
}

// makePath returns a path in raddle's directory of configuration.
func (r *reader) makePath(parts ...string) string {
	return filepath.Join(append([]string{r.dirs.Config}, parts...)...)
}

// takeFile takes one file with another text.
func (r *reader) takeFile(kind, name, from, to string, text []byte, why string) {
	p := filesPart{dir: filepath.Dir(to), files: []copied{{path: filepath.Base(to), text: text, mode: 0o600}}}
	r.takeThing(kind, name, from, to, p, why)
}

// takeDir takes the files of a directory. changes are further reasons for which it is not the same.
func (r *reader) takeDir(kind, name, from, to string, changes ...string) {
	files, left := r.copyDir(from)
	if len(files) == 0 {
		r.leaveThing(kind, name, from, cmp.Or(describeLeft(left), "it has no files"))
		return
	}
	if text := describeLeft(left); text != "" {
		changes = append(changes, text)
	}
	changes = slices.DeleteFunc(changes, func(c string) bool { return c == "" })
	r.takeThing(kind, name, from, to, filesPart{dir: to, files: files}, strings.Join(changes, "; "))
}

// takeSkills takes the skills of a directory: folders with a SKILL.md.
func (r *reader) takeSkills(dir string) {
	for _, name := range r.listNames(dir) {
		path := filepath.Join(dir, name)
		if strings.HasPrefix(name, ".") || !r.isDir(path) {
			if r.hasFile(filepath.Join(path, "SKILL.md")) && !strings.HasPrefix(name, ".") {
				r.leaveThing(kindSkill, name, path, "it leads out of the program's directory")
			}
			continue
		}
		if r.hasFile(filepath.Join(path, "SKILL.md")) {
			r.takeDir(kindSkill, name, path, r.makePath("skills", name))
		}
	}
}

// isName reports whether a text can be the name of a file in raddle's directories.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, `/\:*?"<>|`+"\x00\n\r\t") && !strings.HasPrefix(name, "-") && len(name) <= 100
}
