package agentbundle

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/redact"
)

// A Dir is the directory of an agent, and where it is in the bundle: at its name, with slashes.
type Dir struct {
	Name string
	Path string
}

// Pack reads the directories of agents; the first one is that of the agent that is run. It leaves out names that begin
// with a dot, knowledge bases, what Python has compiled, and what the files .gitignore and .raddleignore of the
// directories list. A link, or too many bytes, is a [*failure.Error] with the file.
func Pack(dirs []Dir) (*Bundle, error) {
	p := &packer{left: maxBytes}
	names := map[string]string{}
	for _, d := range dirs {
		if other, there := names[d.Name]; there {
			return nil, failure.NewInvalid("rename one of the directories", "two agents have the same name: %s and %s", other, d.Path)
		}
		names[d.Name] = d.Path
		if err := checkPath(d.Name); err != nil {
			return nil, failure.NewInvalid("rename the directory", "%s: its name cannot be that of an agent in a bundle", d.Path)
		}
		root, err := filepath.EvalSymlinks(d.Path)
		if err != nil {
			return nil, err
		}
		if err := p.addDir(root, d.Name, nil); err != nil {
			return nil, err
		}
	}
	if len(p.files) == 0 {
		return nil, failure.NewInvalid("", "the agent has no files")
	}
	files, contents := sortFiles(p.files, p.contents)
	return newBundle(dirs[0].Name, files, contents)
}

// A packer collects files.
type packer struct {
	files    []File
	contents [][]byte
	left     int64 // bytes that may be added
}

// addDir adds what is in a directory, which is at name in the bundle. rules are those of the directories above it.
func (p *packer) addDir(dir, name string, rules []ignoreRule) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	rules, err = addIgnoreFiles(rules, dir, name)
	if err != nil {
		return err
	}
	isBase := findBases(dir, entries)
	for _, e := range entries {
		at := path.Join(name, e.Name())
		if strings.HasPrefix(e.Name(), ".") || e.Name() == "__pycache__" || isBase(e.Name()) || isIgnored(rules, at, e.IsDir()) {
			continue
		}
		file := filepath.Join(dir, e.Name())
		switch {
		case e.IsDir():
			err = p.addDir(file, at, rules)
		case e.Type()&fs.ModeSymlink != 0:
			err = failure.NewInvalid("replace it by the file, or list it in "+IgnoreFile, "%s is a link, which a bundle cannot have", file)
		case !e.Type().IsRegular():
			err = failure.NewInvalid("remove it, or list it in "+IgnoreFile, "%s is not a file", file)
		default:
			err = p.addFile(file, at)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addFile adds a file. It fails if the bundle becomes too large.
func (p *packer) addFile(file, at string) error {
	if err := checkPath(at); err != nil {
		return failure.NewInvalid("rename it, or list it in "+IgnoreFile, "%s: its name cannot be in a bundle", file)
	}
	f, err := plainfile.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only reads
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(f, p.left+1))
	if err != nil {
		return err
	}
	if p.left -= int64(len(text)); p.left < 0 {
		return failure.NewInvalid("list what a run does not need in "+IgnoreFile, "the agent is larger than %d MiB, which is too much for a bundle: %s does not fit", maxBytes>>20, file)
	}
	if len(p.files) == maxFiles {
		return failure.NewInvalid("list what a run does not need in "+IgnoreFile, "the agent has more than %d files, which is too much for a bundle", maxFiles)
	}
	p.files = append(p.files, File{Path: at, Size: int64(len(text)), Exec: info.Mode()&0o100 != 0, SHA256: hashBytes(text)})
	p.contents = append(p.contents, text)
	return nil
}

// madeByRaddle begins the file that says that a knowledge base is built.
const madeByRaddle = "# Made by raddle: remove this file to build the knowledge base again.\n"

// findBases returns a function that reports whether a file of a directory belongs to a knowledge base: the file that
// says that one is built, the base that it names, and what a build that is not finished has made.
func findBases(dir string, entries []os.DirEntry) func(name string) bool {
	const lock = ".db-lock"
	bases := map[string]bool{}
	for _, e := range entries {
		if stem, ok := strings.CutSuffix(e.Name(), lock); ok {
			bases[stem+".db"] = true
		}
		if !e.Type().IsRegular() || filepath.Ext(e.Name()) != ".yaml" {
			continue
		}
		text, err := plainfile.ReadBeneath(dir, e.Name(), maxBytes)
		if err != nil {
			continue // addFile reports that
		}
		rest, ok := bytes.CutPrefix(text, []byte(madeByRaddle))
		if !ok {
			continue
		}
		bases[e.Name()] = true
		for line := range strings.Lines(string(rest)) {
			if base, ok := strings.CutPrefix(line, "base:"); ok {
				bases[strings.Trim(strings.TrimSpace(base), `"'`)] = true
			}
		}
	}
	return func(name string) bool {
		base, _, _ := strings.Cut(name, ".db-") // rag.db-lock, rag.db-wal
		return bases[name] || base != name && bases[base+".db"]
	}
}

// CheckSecrets returns an error that names the first file with a secret or a private key in it.
func (b *Bundle) CheckSecrets(secrets *redact.Set) error {
	for i, f := range b.Files {
		what := ""
		text := string(b.contents[i])
		switch {
		case privateKey().MatchString(text):
			what = "a private key"
		case secrets.Text(text) != text, secrets.Text(f.Path) != f.Path:
			what = "a secret of this machine"
		default:
			continue
		}
		return failure.NewInvalid("remove it, and let the run read it from the environment; or list the file in "+IgnoreFile, "%s has %s in it, so the agent is not written to the store", secrets.Text(f.Path), what)
	}
	return nil
}

// String returns the bundle in words.
func (b *Bundle) String() string { return fmt.Sprintf("bundle %.12s of agent '%s'", b.Hash, b.Agent) }
