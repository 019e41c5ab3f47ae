package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/plainfile"
)

// scriptEndings and scriptNames are the files that Digest covers, in addition to executable ones;
// passedOver are the directories that it leaves out.
var (
	scriptEndings = []string{".sh", ".bash", ".py", ".pyc", ".pth", ".so", ".ts", ".mts", ".cts", ".js", ".mjs", ".cjs"}
	scriptNames   = []string{"graph.yaml", "graph.yml", "config.yaml", "config.yml", "permissions.yaml", "hooks.yaml", "mcp.json", ".env"}
	passedOver    = []string{".git", "node_modules", ".venv", "sessions", "cache"}
)

// Digest returns a digest of everything in a directory that may run or that decides what runs:
// scripts, executable files, agent files, rules, servers. It also returns these files, relative to
// the directory, so that a person can see them. Files in .git, sessions and cache do not count.
// Files in node_modules and .venv do not count either: use [DigestTree] for them.
// The digest depends on the names, sizes and contents of the files, not on their times.
func Digest(dir string) (digest string, files []string, err error) {
	sum := sha256.New()
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if path != dir && slices.Contains(passedOver, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() {
			return nil // a link that leads nowhere, a socket: nothing that could run
		}
		ending := strings.ToLower(filepath.Ext(path))
		if !slices.Contains(scriptEndings, ending) && !slices.Contains(scriptNames, d.Name()) && info.Mode()&0o111 == 0 {
			return nil
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files = append(files, filepath.ToSlash(rel))
		return addFile(sum, path, filepath.ToSlash(rel), info.Size())
	})
	if err != nil {
		return "", nil, fmt.Errorf("look at the scripts of %s: %w", dir, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), files, nil
}

// DigestTree returns a digest of everything in a directory, such as a Python environment. For a
// link, it covers the target's path, and also the target's contents if the target is in the
// workspace but not in the directory itself.
func DigestTree(dir, workspace string) (string, error) {
	t := treeDigest{sum: sha256.New(), dir: dir, workspace: workspace, seen: map[string]bool{}}
	if real, err := resolveAbs(dir); err == nil {
		t.dir = real
	}
	if real, err := resolveAbs(workspace); err == nil {
		t.workspace = real
	}
	if err := t.addPath(t.dir, ""); err != nil {
		return "", fmt.Errorf("look at the files of %s: %w", dir, err)
	}
	return hex.EncodeToString(t.sum.Sum(nil)), nil
}

// A treeDigest collects the digest of a tree of files.
// A link to a directory is entered once, whatever number of links lead to it.
type treeDigest struct {
	sum            hash.Hash
	dir, workspace string
	seen           map[string]bool // targets of links
}

// addPath adds a directory or file under a name.
// Of the rights only those to run a file count. Sockets and devices do not count.
func (t *treeDigest) addPath(root, as string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(filepath.Join(as, rel))
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			return t.addLink(path, name)
		case d.Type().IsRegular():
			fmt.Fprintf(t.sum, "%o ", info.Mode().Perm()&0o111)
			return addFile(t.sum, path, name, info.Size())
		}
		return nil
	})
}

// addLink adds a link: its name, where it leads, and what is there if that is in the workspace,
// where a model may change it.
func (t *treeDigest) addLink(path, name string) error {
	to, err := os.Readlink(path)
	if err != nil {
		return err
	}
	fmt.Fprintf(t.sum, "link %d:%s %d:%s", len(name), name, len(to), to)
	at, err := resolvePath(path)
	if err != nil || !isWithin(t.workspace, at, false) || isWithin(t.dir, at, false) || t.seen[at] {
		return nil // it leads to the user's own files, or to what is covered
	}
	if isWithin(at, t.dir, false) {
		return fmt.Errorf("the link %s leads to a directory around it", name)
	}
	t.seen[at] = true
	if _, err := os.Lstat(at); err != nil {
		return nil // to nothing
	}
	return t.addPath(at, name)
}

// largestDigested is the size in bytes of the largest file of which a digest is made: libraries of Python packages have
// up to two gigabytes.
const largestDigested = 4 << 30

// addFile adds the name, the size and the contents of a file. The lengths before the parts keep two
// different trees from giving the same bytes.
func addFile(sum io.Writer, path, name string, size int64) error {
	if size > largestDigested {
		return fmt.Errorf("%s has %d bytes, and files that may run are looked at up to %d: remove it", path, size, int64(largestDigested))
	}
	f, err := plainfile.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	fmt.Fprintf(sum, "%d:%s %d:", len(name), name, size)
	_, err = io.Copy(sum, io.LimitReader(f, largestDigested))
	return err
}
