package agentbundle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"raddle.dev/graph/journal"
)

// manifestFile is the file of a written bundle that lists its files. No agent has a directory with this name.
const manifestFile = ".files.json"

// Open returns the directory of the agent of a bundle: below cache, where the bundle is read from the store and written
// unless it is there already. Every file is compared with its hash. Files are read-only; directories are not, so that a
// knowledge base can be built there once. Several processes may call it at the same time.
func Open(ctx context.Context, st journal.Store, hash, cache string) (dir string, err error) {
	if !hashForm().MatchString(hash) {
		return "", &DamagedError{hash, errors.New("it is not named by a hash")}
	}
	root := filepath.Join(cache, "agents", hash)
	if b, err := verifyDir(hash, root); err == nil {
		return filepath.Join(root, filepath.FromSlash(b.Agent)), nil
	}
	b, err := Get(ctx, st, hash)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return "", err
	}
	temp, err := os.MkdirTemp(filepath.Dir(root), ".new-*")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(temp) }() // it has another name if all went well
	if err := b.write(temp); err != nil {
		return "", fmt.Errorf("%v cannot be written: %w", b, err)
	}
	for range 3 {
		if err = os.Rename(temp, root); err == nil {
			break
		}
		if _, other := verifyDir(hash, root); other == nil {
			err = nil // another process was faster
			break
		}
		// What is there was changed, or removed in part.
		if away := temp + ".old"; os.Rename(root, away) == nil {
			defer func() { _ = os.RemoveAll(away) }()
		}
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(root, filepath.FromSlash(b.Agent)), nil
}

// write writes the files of a bundle into a directory. Nothing is written outside of it.
func (b *Bundle) write(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing is buffered
	for i, f := range b.Files {
		if err := root.MkdirAll(path.Dir(f.Path), 0o755); err != nil {
			return err
		}
		mode := os.FileMode(0o444)
		if f.Exec {
			mode = 0o555
		}
		if err := writeNew(root, f.Path, b.contents[i], mode); err != nil {
			return err
		}
	}
	return writeNew(root, manifestFile, b.manifest, 0o444)
}

func writeNew(root *os.Root, name string, text []byte, mode os.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Close())
}

// verifyDir returns the bundle that was written to a directory, without its contents, if every file of it is as it was.
func verifyDir(hash, dir string) (*Bundle, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // only reads
	text, err := root.ReadFile(manifestFile)
	if err != nil {
		return nil, err
	}
	b, err := readManifest(hash, text)
	if err != nil {
		return nil, err
	}
	for _, f := range b.Files {
		info, err := root.Lstat(f.Path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() || info.Size() != f.Size {
			return nil, fmt.Errorf("%s was changed", f.Path)
		}
		text, err := root.ReadFile(f.Path)
		if err != nil {
			return nil, err
		}
		if hashBytes(text) != f.SHA256 {
			return nil, fmt.Errorf("%s was changed", f.Path)
		}
	}
	return b, nil
}
