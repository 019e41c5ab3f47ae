package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Options says what to install and how. The zero value installs all agents and
// leaves alone what a user has changed.
type Options struct {
	Agents []string // by name; nil: all
	Force  bool     // replace files that a user has changed, and save the old ones as FILE.bak
}

// An Outcome is what Install did with one agent. Names of files are relative to its
// directory, with slashes.
type Outcome struct {
	Agent string `json:"agent"`
	New   bool   `json:"new"` // the directory did not exist before
	// Foreign says that a directory of that name exists that raddle did not install: nothing was written.
	Foreign bool     `json:"foreign"`
	Written []string `json:"written"` // files that were missing or outdated
	Kept    []string `json:"kept"`    // files that the user has changed: they stay
	Saved   []string `json:"saved"`   // files that the user had changed: replaced, and saved as FILE.bak
	Removed []string `json:"removed"` // files that no longer belong to the agent, and that the user had not changed
}

// An UnknownError reports the name of an agent that does not come with the program.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("no agent %q comes with raddle", e.Name) }

// IsInstalled reports whether Install has ever written to the directory, also if its
// agents were removed since.
func IsInstalled(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, manifestFile))
	return err == nil
}

// Install writes agents to a directory, which it creates if necessary, and returns
// the outcome for each. A file is written completely or not at all, and so is a new agent,
// also if several processes install at the same time. An error leaves what was
// installed before it.
func Install(dir string, o Options) (outcomes []Outcome, err error) {
	for _, name := range o.Agents {
		if !slices.Contains(Names(), name) {
			return nil, &UnknownError{name}
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	removeLeftovers(dir)
	in := &installation{dir: dir, force: o.Force}
	if in.manifest, err = readManifest(dir); err != nil {
		return nil, err
	}
	for _, unit := range unitNames() {
		if unit != shared && o.Agents != nil && !slices.Contains(o.Agents, unit) {
			continue
		}
		out, err := in.installUnit(unit)
		if err != nil {
			return outcomes, errors.Join(err, in.manifest.write(dir))
		}
		if unit != shared || len(out.Kept)+len(out.Saved) > 0 {
			outcomes = append(outcomes, out)
		}
	}
	return outcomes, in.manifest.write(dir)
}

// removeLeftovers removes what killed installations have left behind. Files that are being
// written now are less than an hour old.
func removeLeftovers(dir string) {
	left, _ := filepath.Glob(filepath.Join(dir, "*", unfinished)) // the pattern is well-formed
	more, _ := filepath.Glob(filepath.Join(dir, unfinished))
	for _, path := range append(left, more...) {
		if info, err := os.Lstat(path); err == nil && time.Since(info.ModTime()) > time.Hour {
			_ = os.RemoveAll(path) // the next installation tries again
		}
	}
}

// unfinished is the pattern of the names of files and directories until they are complete.
const unfinished = ".installing-*"

// installation is one call of Install.
type installation struct {
	dir      string
	force    bool
	manifest *manifest
}

// installUnit installs one directory of the bundle.
func (in *installation) installUnit(unit string) (Outcome, error) {
	out := Outcome{Agent: unit}
	all := listFiles(unit)
	made, err := in.installNewUnit(unit, all)
	if err != nil {
		return out, err
	}
	if made {
		out.New = true
		for _, f := range all {
			in.manifest.Files[unit+"/"+f.name] = computeDigest(f.text)
		}
		return out, nil
	}
	if unit != shared && !in.isInstalledUnit(unit, all) {
		out.Foreign = true
		return out, nil
	}
	for _, f := range all {
		if err := in.updateFile(unit, f, &out); err != nil {
			return out, err
		}
	}
	return out, in.removeOutdated(unit, all, &out)
}

// installNewUnit writes a directory that does not exist yet, under a temporary name first. It
// returns false if the directory exists.
func (in *installation) installNewUnit(unit string, all []file) (made bool, err error) {
	target := filepath.Join(in.dir, unit)
	if _, err := os.Lstat(target); err == nil {
		return false, nil
	}
	temp, err := os.MkdirTemp(in.dir, unfinished)
	if err != nil {
		return false, err
	}
	defer func() { _ = os.RemoveAll(temp) }() // nothing is left in it after a success
	build := filepath.Join(temp, unit)
	if err := os.Mkdir(build, 0o755); err != nil {
		return false, err
	}
	for _, f := range all {
		if err := writeFile(filepath.Join(build, filepath.FromSlash(f.name)), f); err != nil {
			return false, err
		}
	}
	if err := os.Rename(build, target); err != nil {
		if _, there := os.Lstat(target); there == nil {
			return false, nil // another process was faster
		}
		return false, err
	}
	return true, nil
}

// isInstalledUnit reports whether raddle installed a directory: it is not an agent of the user
// that has the same name.
func (in *installation) isInstalledUnit(unit string, all []file) bool {
	own := false // there is a definition that does not come from the bundle
	same := slices.ContainsFunc(all, func(f file) bool {
		have, err := os.ReadFile(filepath.Join(in.dir, unit, f.name))
		return f.isDefinition() && err == nil && bytes.Equal(have, f.text)
	})
	for _, name := range definitions {
		_, err := os.Lstat(filepath.Join(in.dir, unit, name))
		own = own || err == nil && !slices.ContainsFunc(all, func(f file) bool { return f.name == name })
	}
	return !own && (same || in.manifest.hasUnit(unit))
}

// updateFile updates one file of a directory.
func (in *installation) updateFile(unit string, f file, out *Outcome) error {
	key := unit + "/" + f.name
	target := filepath.Join(in.dir, unit, filepath.FromSlash(f.name))
	have, own, err := in.readCurrent(key, target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		out.Written = append(out.Written, f.name)
	case err != nil:
		return err
	case bytes.Equal(have, f.text):
		in.manifest.Files[key] = computeDigest(f.text)
		return nil
	case !own:
		out.Written = append(out.Written, f.name)
	case !in.force:
		out.Kept = append(out.Kept, f.name)
		return nil
	default:
		if err := os.Rename(target, target+".bak"); err != nil {
			return err
		}
		out.Saved = append(out.Saved, f.name)
	}
	in.manifest.Files[key] = computeDigest(f.text)
	return replaceFile(target, f)
}

// readCurrent reads an installed file, and reports whether it is the user's own: it was
// changed since it was installed, or is not a regular file.
func (in *installation) readCurrent(key, target string) (text []byte, own bool, err error) {
	info, err := os.Lstat(target)
	if err != nil {
		return nil, false, err
	}
	if !info.Mode().IsRegular() {
		return nil, true, nil
	}
	text, err = os.ReadFile(target)
	if err != nil {
		return nil, false, err
	}
	return text, in.manifest.isChanged(key, text), nil
}

// removeOutdated removes files of an earlier version that the user has not changed.
func (in *installation) removeOutdated(unit string, all []file, out *Outcome) error {
	for _, name := range in.manifest.unitFiles(unit) {
		if slices.ContainsFunc(all, func(f file) bool { return f.name == name }) {
			continue
		}
		key := unit + "/" + name
		target := filepath.Join(in.dir, unit, filepath.FromSlash(name))
		_, own, err := in.readCurrent(key, target)
		if err == nil && !own {
			err = os.Remove(target)
			out.Removed = append(out.Removed, name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		delete(in.manifest.Files, key)
	}
	return nil
}

// writeFile creates a file, and the directories above it.
func writeFile(target string, f file) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	return os.WriteFile(target, f.text, f.fileMode())
}

// replaceFile writes a file under a temporary name and moves it into place.
func replaceFile(target string, f file) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	temp, err := os.CreateTemp(filepath.Dir(target), unfinished)
	if err != nil {
		return err
	}
	_, err = temp.Write(f.text)
	err = errors.Join(err, temp.Chmod(f.fileMode()), temp.Close())
	if err == nil {
		err = os.Rename(temp.Name(), target)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}
