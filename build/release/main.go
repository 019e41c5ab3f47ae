// Command release makes the parts of a release that goreleaser does not make: the licence texts of the modules that the
// program contains, the module's own archive, from which "go install" works without a server, the bill of materials of a
// program, the packages of npm and PyPI, the marks of packages, signatures and the statement about how all was built.
// It is run in the directory of the module.
//
//	release licenses DIR
//	release module VERSION DIR                       VERSION such as v1.2.3
//	release sbom PROGRAM FILE
//	release npm VERSION DIR                          VERSION such as 1.2.3, also below
//	release packages PROGRAM OS ARCH VERSION DIR
//	release marks DIR
//	release key FILE                                 a new private key; prints the public one
//	release sign LIST SIGNATURE                      with the key in the file RADDLE_SIGNING_KEY
//	release provenance LIST FILE                     with the same key
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
	"golang.org/x/mod/zip"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "licenses":
		return copyLicenses(".", "./cmd/raddle", args[1])
	case len(args) == 3 && args[0] == "module":
		return writeModule(".", args[1], args[2])
	case len(args) == 3 && args[0] == "sbom":
		return writeBill(args[1], args[2])
	}
	return makeRest(args)
}

// makeRest makes packages, marks and signatures.
func makeRest(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "npm":
		when, err := readCommitTime(".")
		if err != nil {
			return err
		}
		return writeMainNPM(args[1], args[2], when)
	case len(args) == 6 && args[0] == "packages":
		when, err := readCommitTime(".")
		if err != nil {
			return err
		}
		return writePackages(args[1], args[2], args[3], args[4], args[5], when)
	case len(args) == 2 && args[0] == "marks":
		return writeMarks(args[1])
	case len(args) == 2 && args[0] == "key":
		public, err := makeKey(args[1])
		if err == nil {
			fmt.Println(public)
		}
		return err
	case len(args) == 3 && (args[0] == "sign" || args[0] == "provenance"):
		key, err := readKey(os.Getenv("RADDLE_SIGNING_KEY"), os.Getenv("RADDLE_RELEASE_KEY"))
		if err != nil {
			return err
		}
		if args[0] == "sign" {
			return signFile(key, args[1], args[2])
		}
		return writeProvenance(".", args[1], args[2], key)
	}
	return errors.New("usage: release licenses DIR | module VERSION DIR | sbom PROGRAM FILE | npm VERSION DIR | packages PROGRAM OS ARCH VERSION DIR | marks DIR | key FILE | sign LIST SIGNATURE | provenance LIST FILE")
}

// A goModule is what "go list -m -json" tells of a module.
type goModule struct {
	Path, Version, Dir string
	Main               bool
}

// platforms are those of which a release has archives. A module may be part of one only.
var platforms = []string{"linux", "darwin", "windows"}

// licenseFile matches the names of files that hold the terms of a module.
var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// copyLicenses copies the licence texts of all modules that a package is built from, on any
// platform, into dir/MODULE@VERSION. A module without one is an error.
func copyLicenses(root, pkg, dir string) error {
	modules := map[string]goModule{}
	for _, platform := range platforms {
		cmd := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Version}}\t{{.Dir}}{{end}}{{end}}", pkg)
		cmd.Dir, cmd.Stderr = root, os.Stderr
		cmd.Env = append(os.Environ(), "GOOS="+platform, "CGO_ENABLED=0")
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("list the packages of %s for %s: %w", pkg, platform, err)
		}
		for line := range strings.Lines(string(out)) {
			if f := strings.Split(strings.TrimSpace(line), "\t"); len(f) == 3 {
				modules[f[0]] = goModule{Path: f[0], Version: f[1], Dir: f[2]}
			}
		}
	}
	var missing []string
	for path, m := range modules {
		n, err := copyMatching(m.Dir, filepath.Join(dir, filepath.FromSlash(path)+"@"+m.Version))
		if err != nil {
			return err
		}
		if n == 0 {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("no licence text in: %s", strings.Join(missing, ", "))
	}
	return nil
}

// copyMatching copies the licence files of a directory, and returns how many there are.
func copyMatching(from, to string) (n int, err error) {
	entries, err := os.ReadDir(from)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !licenseFile.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			return n, err
		}
		if err := os.MkdirAll(to, 0o755); err != nil {
			return n, err
		}
		if err := os.WriteFile(filepath.Join(to, e.Name()), text, 0o644); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// writeModule writes the committed files of the module at root as a directory that the Go
// tool takes as a proxy: GOPROXY=file://DIR,… go install MODULE/cmd/raddle@VERSION.
func writeModule(root, version, dir string) error {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "list", "-m", "-json")
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("read go.mod: %w", err)
	}
	var m goModule
	if err := json.Unmarshal(out, &m); err != nil {
		return err
	}
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		return err
	}
	at := filepath.Join(dir, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return err
	}
	when, err := readCommitTime(root)
	if err != nil {
		return err
	}
	info, err := json.Marshal(map[string]any{"Version": version, "Time": when.UTC()})
	if err != nil {
		return err
	}
	gomod, err := readGit(root, "show", "HEAD:go.mod")
	if err != nil {
		return err
	}
	files, err := os.MkdirTemp("", "raddle-module-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(files)
	if err := checkOut(root, files); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(at, "list"), []byte(version+"\n"), 0o644),
		os.WriteFile(filepath.Join(at, version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(at, version+".mod"), []byte(gomod+"\n"), 0o644),
		writeFile(filepath.Join(at, version+".zip"), func(w io.Writer) error {
			return zip.CreateFromDir(w, module.Version{Path: m.Path, Version: version}, files)
		}),
	)
}

// checkOut writes the committed files of a repository to a directory. It also works in a
// work tree of its own, which package zip does not.
func checkOut(root, dir string) error {
	archive := filepath.Join(dir, ".archive.tar")
	if _, err := readGit(root, "archive", "--format=tar", "--output="+archive, "HEAD"); err != nil {
		return err
	}
	cmd := exec.Command("tar", "-xf", archive, "-C", dir)
	cmd.Stderr = os.Stderr
	return errors.Join(cmd.Run(), os.Remove(archive))
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// readCommitTime returns the time of the commit that is checked out.
func readCommitTime(root string) (time.Time, error) {
	commit, err := readGit(root, "log", "-1", "--format=%cI", "HEAD")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, commit)
}

// readGit returns what a git command prints, without the white space around it.
func readGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
