// Package fetchagent fetches the files of agents from a git repository or an archive into a directory: regular files
// only, at most so many, and pinned to a commit or to the digest of the archive. It runs nothing of what it fetches.
package fetchagent

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/gitrepo"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/proc"
	"raddle.dev/internal/base/redact"
	"raddle.dev/tool/builtin"
)

// The limits of what is fetched.
const (
	mostFiles      = 2000
	mostBytes      = 32 << 20
	largestFile    = 4 << 20
	largestArchive = 64 << 20
)

// An Origin is where files are from.
type Origin struct {
	Address string // without a password
	Pin     string // the commit, or sha256: and the digest of the archive
	Name    string // for an agent whose files are not in a directory of their own
	Dir     string // where its files are, absolute: an archive may have all of them in one directory
}

// Fetch writes the files of an address into a directory, which must be empty. The address is that of a git repository
// (https, ssh, or a directory of this machine), with @ and a branch, tag or commit behind it if that is wanted, or that
// of an archive (.tar.gz, .tgz or .zip, https or a file). work is the directory that paths are relative to.
func Fetch(ctx context.Context, address, work string, env []string, dir string) (Origin, error) {
	o := Origin{Address: redact.RedactURL(address), Name: nameAddress(address)}
	switch {
	case strings.HasPrefix(address, "-"), address == "":
		return o, failure.NewUsage("write https://HOST/OWNER/NAME or the path of an archive", "%q is not an address", address)
	case isArchive(address):
		text, err := readArchive(ctx, address, work)
		if err != nil {
			return o, err
		}
		sum := sha256.Sum256(text)
		o.Pin = "sha256:" + hex.EncodeToString(sum[:])
		err = unpack(address, text, dir)
		o.Dir = findTop(dir)
		return o, err
	case strings.HasPrefix(address, "http://"):
		return o, failure.NewUsage("use https://", "%s is not fetched: what is sent without https can be changed on its way", o.Address)
	}
	repo, ref := splitRef(address)
	commit, err := fetchGit(ctx, repo, ref, work, env, dir)
	o.Address = redact.RedactURL(repo)
	o.Pin = commit
	o.Dir = dir
	return o, err
}

func isArchive(address string) bool {
	for _, ending := range []string{".tar.gz", ".tgz", ".zip"} {
		if strings.HasSuffix(strings.ToLower(address), ending) {
			return true
		}
	}
	return false
}

// splitRef separates what follows the last @ of an address from it, unless that belongs to a user of a host: a branch or
// a tag that is named so has neither a slash nor a colon.
func splitRef(address string) (repo, ref string) {
	at := strings.LastIndexByte(address, '@')
	if at <= 0 || strings.ContainsAny(address[at:], ":/") {
		return address, ""
	}
	return address[:at], address[at+1:]
}

// nameAddress returns the last part of an address without its ending.
func nameAddress(address string) string {
	repo, _ := splitRef(address)
	name := path.Base(strings.TrimRight(filepath.ToSlash(repo), "/"))
	for _, ending := range []string{".tar.gz", ".tgz", ".zip", ".git"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

func readArchive(ctx context.Context, address, work string) ([]byte, error) {
	if strings.Contains(address, "://") {
		return builtin.Download(ctx, address)
	}
	if !filepath.IsAbs(address) {
		address = filepath.Join(work, address)
	}
	return plainfile.Read(address, largestArchive)
}

// fetchGit writes the files of a commit into a directory. git checks nothing out, so that no hook, filter or link of the
// repository counts.
func fetchGit(ctx context.Context, repo, ref, work string, env []string, dir string) (commit string, err error) {
	bare := filepath.Join(dir, ".bare.git")
	defer os.RemoveAll(bare)
	if !strings.Contains(repo, ":") && !filepath.IsAbs(repo) {
		repo = filepath.Join(work, repo)
	}
	env = append(gitrepo.HardenEnvironment(env), "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=https:ssh:file")
	run := func(args ...string) (string, error) {
		res, err := proc.Run(ctx, proc.Command{Path: "git", Args: args, Dir: dir, Env: env, Limit: 2 * mostBytes, MaxOutput: 2 * mostBytes})
		if exit, ok := errors.AsType[*proc.ExitError](err); ok && exit.Code > 0 {
			return "", failure.NewInvalid("check the address, and that git can reach it", "git %s: %s", args[0], strings.TrimSpace(string(res.Stderr)))
		}
		return string(res.Stdout), err
	}
	clone := []string{"clone", "--bare", "--quiet", "--no-tags", "--depth", "1", "--", repo, bare}
	if ref != "" {
		clone = []string{"clone", "--bare", "--quiet", "--", repo, bare}
	} else {
		ref = "HEAD"
	}
	if _, err := run(clone...); err != nil {
		return "", err
	}
	out, err := run("--git-dir", bare, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}")
	if err != nil || strings.TrimSpace(out) == "" {
		return "", failure.NewUsage("name a branch, a tag or a whole commit", "the repository has no %q", ref)
	}
	commit = strings.TrimSpace(out)
	text, err := run("--git-dir", bare, "archive", "--format=tar", commit)
	if err != nil {
		return commit, err
	}
	return commit, unpackTar(strings.NewReader(text), dir)
}

// findTop returns the directory that all files of an archive are in, as those of a repository have one.
func findTop(dir string) string {
	entries, _ := os.ReadDir(dir)
	if len(entries) == 1 && entries[0].IsDir() && !slices.Contains([]string{"agents", "skills", "roles", "commands", "functions"}, entries[0].Name()) {
		return filepath.Join(dir, entries[0].Name())
	}
	return dir
}

// unpack writes the files of an archive into a directory.
func unpack(address string, text []byte, dir string) error {
	if strings.HasSuffix(strings.ToLower(address), ".zip") {
		return unpackZip(text, dir)
	}
	z, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return failure.NewInvalid("", "the archive cannot be read: %v", err)
	}
	return unpackTar(z, dir)
}

// A writer writes files with limits.
type writer struct {
	dir    string
	files  int
	budget int64
}

// writeFile writes a file at a path of an archive. Paths that lead out are left out.
func (w *writer) writeFile(name string, mode fs.FileMode, r io.Reader) error {
	name = path.Clean(strings.ReplaceAll(name, "\\", "/"))
	if !filepath.IsLocal(filepath.FromSlash(name)) || name == "." || strings.HasPrefix(name, ".bare.git") {
		return nil
	}
	if w.files++; w.files > mostFiles {
		return failure.NewInvalid("", "it has more than %d files", mostFiles)
	}
	text, err := io.ReadAll(io.LimitReader(r, largestFile+1))
	if err != nil {
		return failure.NewInvalid("", "%s cannot be read: %v", name, err)
	}
	if w.budget += int64(len(text)); len(text) > largestFile || w.budget > mostBytes {
		return failure.NewInvalid("", "%s is too large, or all files together are", name)
	}
	target := filepath.Join(w.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	return os.WriteFile(target, text, 0o600|mode&0o100)
}

func unpackTar(r io.Reader, dir string) error {
	w := &writer{dir: dir}
	for t := tar.NewReader(io.LimitReader(r, 4*mostBytes)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failure.NewInvalid("", "the archive cannot be read: %v", err)
		}
		if h.Typeflag != tar.TypeReg {
			continue // a link could lead anywhere
		}
		if err := w.writeFile(h.Name, h.FileInfo().Mode(), t); err != nil {
			return err
		}
	}
}

func unpackZip(text []byte, dir string) error {
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return failure.NewInvalid("", "the archive cannot be read: %v", err)
	}
	w := &writer{dir: dir}
	for _, f := range z.File {
		if !f.Mode().IsRegular() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return fmt.Errorf("the archive cannot be read: %w", err)
		}
		err = w.writeFile(f.Name, f.Mode(), r)
		_ = r.Close() // only reads
		if err != nil {
			return err
		}
	}
	return nil
}
