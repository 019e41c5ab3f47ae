package app

import (
	"path/filepath"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/tool/permission"
)

// Pickup is a directory that a run uses because it is in the working directory, not
// because the user named it. Until the user consents, its rules can only forbid, the
// tools of its scripts ask for each call, and its servers are not started.
type Pickup struct {
	Dir   string // absolute
	Agent bool   // it belongs to an agent and is not the project's own rules
	// Packages reports whether it holds interpreters and packages, such as .venv. Until
	// the user consents, those of the system are used. Files and Digest are empty.
	Packages bool
	Files    []string // files that may run, or that decide what runs; relative to Dir
	Digest   string   // digest of the current content of Files
}

// Pickups returns what an agent picks up in the working directory without consent:
// the project's own rules, and the agents that it runs from elsewhere.
func (p *Process) Pickups(a *flow.Agent) ([]Pickup, error) {
	dirs := []string{filepath.Join(p.Dirs.Work, filepath.Dir(projectFile))}
	for _, child := range a.Agents() {
		if !p.vouched(child.Dir, a.Dir) {
			dirs = append(dirs, child.Dir)
		}
	}
	var list []Pickup
	for i, dir := range dirs {
		if !isDir(dir) || p.consented(dir) {
			continue
		}
		digest, files, err := permission.Digest(dir)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			list = append(list, Pickup{Dir: dir, Agent: i > 0, Files: files, Digest: digest})
		}
	}
	return append(list, p.packagePickups(a)...), nil
}

// Consent records that the user has agreed to a directory as it was shown. Runs
// that start or are resumed afterwards may use it. If one of its files changes,
// consent is needed again.
func (p *Process) Consent(u Pickup) error {
	if !u.Packages {
		return p.consents().Give(u.Dir, u.Digest)
	}
	digest, err := permission.DigestTree(u.Dir, p.Dirs.Work)
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.trees[u.Dir] = digest
	p.mu.Unlock()
	return p.consents().Give(u.Dir, digest)
}

// Refuse records that the user does not want packages to be used, so that raddle does
// not ask again. It has no effect on other directories.
func (p *Process) Refuse(u Pickup) error {
	if !u.Packages {
		return nil
	}
	return p.consents().Refuse(u.Dir)
}

// ConsentFile returns the path of the file that records what the user agreed to.
func (p *Process) ConsentFile() string { return p.consents().Path }

func (p *Process) consents() permission.Consents {
	return permission.Consents{Path: filepath.Join(p.Dirs.State, "consents.json")}
}

// consented reports whether the user has agreed to a directory as it is now. A
// directory that cannot be read has no consent.
func (p *Process) consented(dir string) bool {
	if !isDir(dir) {
		return false
	}
	digest, _, err := permission.Digest(dir)
	if err != nil {
		return false
	}
	given, err := p.consents().Given(dir, digest)
	return err == nil && given
}

// vouched reports whether an agent's directory is part of the one that was named, or
// of what the user has installed.
func (p *Process) vouched(dir, named string) bool {
	return within(dir, named) || within(dir, p.Dirs.Agents)
}

// within reports whether a path is a directory or lies below it, with links followed.
func within(path, dir string) bool {
	rel, err := filepath.Rel(actual(dir), actual(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// actual returns a path with links followed, or the path itself if it does not exist.
func actual(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}
