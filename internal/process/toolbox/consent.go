package toolbox

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"raddle.dev/flow"
	"raddle.dev/internal/storage/config"
	"raddle.dev/tool/permission"
)

// ImplicitDir is a directory that a run uses because it is in the working directory, not
// because the user named it. Until the user consents, its rules can only forbid, the
// tools of its scripts ask for each call, and its servers are not started.
type ImplicitDir struct {
	Dir   string // absolute
	Agent bool   // it belongs to an agent and is not the project's own rules
	// Packages reports whether it holds interpreters and packages, such as .venv. Until
	// the user consents, those of the system are used. Files are empty.
	Packages bool
	// Servers reports whether Dir is the file in which the project lists MCP servers. Until the user consents, they are
	// not started. Files say what they are.
	Servers bool
	// Skills reports whether it holds skills. Until the user consents, agents do not see them. Files are
	// their names with what they bring.
	Skills bool
	Files  []string // files that may run, or that decide what runs; relative to Dir
	Digest string   // digest of what was shown; "" for packages, of which nothing is
	Hooks  []string // the commands of the hooks that would run, each with its point

	Since   time.Time    // when a person agreed to it as it was then; zero: never
	Changes []FileChange // what has changed since
	seen    map[string]trustedFile
}

// FindImplicitDirs returns what an agent picks up in the working directory without consent:
// the project's own rules, and the agents that it runs from elsewhere.
func (s *Shared) FindImplicitDirs(a *flow.Agent) ([]ImplicitDir, error) {
	dirs := []string{filepath.Join(s.Dirs.Work, filepath.Dir(projectFile))}
	for _, child := range a.Agents() {
		if !s.isNamedOrInstalled(child.Dir, a.Dir) {
			dirs = append(dirs, child.Dir)
		}
	}
	var list []ImplicitDir
	for i, dir := range dirs {
		if !config.IsDir(dir) || s.hasConsent(dir) {
			continue
		}
		digest, files, err := permission.Digest(dir)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			list = append(list, ImplicitDir{
				Dir:    dir,
				Agent:  i > 0,
				Files:  files,
				Digest: digest,
				Hooks:  s.listHooks(a, dir),
			})
		}
	}
	list = slices.Concat(list, s.findProjectServers(a), s.findSkillDirs(a), s.findPackageDirs(a))
	for i := range list {
		s.compareTrusted(&list[i])
	}
	return list, nil
}

// RecordConsent records that the user has agreed to a directory as it was shown. Runs
// that start or are resumed afterwards may use it. If one of its files changes,
// consent is needed again.
func (s *Shared) RecordConsent(u ImplicitDir) error {
	digest := u.Digest
	if digest == "" {
		var err error
		if digest, err = permission.DigestTree(u.Dir, s.Dirs.Work); err != nil {
			return err
		}
	}
	if u.Packages || u.Skills {
		s.mu.Lock()
		s.trees[u.Dir] = digest
		s.mu.Unlock()
	}
	if err := s.consentStore().RecordConsent(u.Dir, digest); err != nil {
		return err
	}
	return s.keepTrusted(u) // behind the consent: a copy without one would say that the user has agreed
}

// RecordRefusal records that the user does not want packages, skills or servers of the project to be used, so that
// raddle does not ask again. It has no effect on other directories.
func (s *Shared) RecordRefusal(u ImplicitDir) error {
	if !u.Packages && !u.Skills && !u.Servers {
		return nil
	}
	return s.consentStore().RecordRefusal(u.Dir)
}

// ConsentFile returns the path of the file that records what the user agreed to.
func (s *Shared) ConsentFile() string { return s.consentStore().Path }

func (s *Shared) consentStore() permission.Consents {
	return permission.Consents{Path: filepath.Join(s.Dirs.State, "consents.json")}
}

// hasConsent reports whether the user has agreed to a directory as it is now. A
// directory that cannot be read has no consent.
func (s *Shared) hasConsent(dir string) bool {
	if !config.IsDir(dir) {
		return false
	}
	digest, _, err := permission.Digest(dir)
	if err != nil {
		return false
	}
	given, err := s.consentStore().HasConsent(dir, digest)
	return err == nil && given
}

// isNamedOrInstalled reports whether an agent's directory is part of the one that was named, of
// what the user has installed, or of what comes with the program.
func (s *Shared) isNamedOrInstalled(dir, named string) bool {
	return isBelow(dir, named) || isBelow(dir, s.Dirs.Agents) || s.Dirs.Bundled != "" && isBelow(dir, s.Dirs.Bundled)
}

// isBelow reports whether a path is a directory or lies below it, with links followed.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(resolveLinks(dir), resolveLinks(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolveLinks returns a path with links followed, or the path itself if it does not exist.
func resolveLinks(path string) string {
	if r, err := filepath.EvalSymlinks(path); err == nil {
		return r
	}
	return path
}
