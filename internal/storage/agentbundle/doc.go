// Package agentbundle packs the files of an agent into a bundle, keeps bundles in a store of runs, and writes them to a
// directory of another machine.
//
// A bundle is named by the hash of its manifest, which lists every file with its hash. So the name decides the whole
// content, and a store that returns anything else is found out before a file is written.
package agentbundle

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"io/fs"

	"raddle.dev/internal/base/pattern"
)

const (
	maxBytes    = 32 << 20 // of all files together
	maxFiles    = 10_000
	maxManifest = 4 << 20
	longestPath = 500
)

// A File is one file of a bundle.
type File struct {
	Path   string `json:"path"` // below the bundle, with slashes; its first part is the directory of an agent
	Size   int64  `json:"size"`
	Exec   bool   `json:"exec,omitempty"`
	SHA256 string `json:"sha256"`
}

// A manifest says what is in a bundle. Its JSON has one form, which is hashed.
type manifest struct {
	Format int    `json:"format"`
	Agent  string `json:"agent"` // the directory of the agent that is run
	Files  []File `json:"files"` // by path
}

const format = 1

// A Bundle is the content of the directories of an agent and of the agents that it names.
type Bundle struct {
	Hash  string // names it
	Agent string // the directory of the agent that is run
	Files []File // by path

	manifest []byte
	contents [][]byte // of Files
}

// Bytes returns the size of all files together.
func (b *Bundle) Bytes() (n int64) {
	for _, f := range b.Files {
		n += f.Size
	}
	return n
}

// newBundle returns the bundle of files with their contents.
func newBundle(agent string, files []File, contents [][]byte) (*Bundle, error) {
	text, err := json.Marshal(manifest{format, agent, files})
	if err != nil {
		return nil, err
	}
	return &Bundle{Hash: hashBytes(text), Agent: agent, Files: files, manifest: text, contents: contents}, nil
}

func hashBytes(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

var hashForm = pattern.CompileLater(`^[0-9a-f]{64}$`)

// readManifest checks a manifest of a bundle with a hash, and returns the bundle without its contents.
func readManifest(hash string, text []byte) (*Bundle, error) {
	var m manifest
	switch {
	case !hashForm().MatchString(hash):
		return nil, fmt.Errorf("%.80q is not the hash of a bundle", hash)
	case len(text) > maxManifest:
		return nil, errors.New("the list of its files is too long")
	case hashBytes(text) != hash:
		return nil, errors.New("the list of its files is not the one that its hash names")
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("the list of its files cannot be read: %w", err)
	}
	if m.Format != format {
		return nil, fmt.Errorf("its format is %d, and this version of raddle knows %d", m.Format, format)
	}
	b := &Bundle{Hash: hash, Agent: m.Agent, Files: m.Files, manifest: text}
	return b, b.checkFiles()
}

// checkFiles returns an error for files that must not be written: the manifest may come from a store that other people
// can change.
func (b *Bundle) checkFiles() error {
	if err := checkPath(b.Agent); err != nil || strings.Contains(b.Agent, "/") {
		return fmt.Errorf("%.80q cannot be the directory of its agent", b.Agent)
	}
	if len(b.Files) == 0 || len(b.Files) > maxFiles {
		return fmt.Errorf("it has %d files", len(b.Files))
	}
	left := int64(maxBytes)
	for i, f := range b.Files {
		if err := checkPath(f.Path); err != nil {
			return err
		}
		if i > 0 && b.Files[i-1].Path >= f.Path {
			return fmt.Errorf("its files are not in order: %q", f.Path)
		}
		if f.Size < 0 || f.Size > left {
			return fmt.Errorf("it is larger than %d MiB", maxBytes>>20)
		}
		left -= f.Size
	}
	if !slices.ContainsFunc(b.Files, func(f File) bool { return strings.HasPrefix(f.Path, b.Agent+"/") }) {
		return fmt.Errorf("it has no files of the agent %q", b.Agent)
	}
	return nil
}

// checkPath returns an error for a path that leads out of a bundle, or that a bundle never has.
func checkPath(path string) error {
	bad := !fs.ValidPath(path) || path == "." || len(path) > longestPath || !utf8.ValidString(path) ||
		!filepath.IsLocal(filepath.FromSlash(path)) || strings.ContainsAny(path, `\:`) || strings.ContainsFunc(path, unicode.IsControl)
	for part := range strings.SplitSeq(path, "/") {
		bad = bad || strings.HasPrefix(part, ".")
	}
	if bad {
		return fmt.Errorf("%.80q cannot be a file of a bundle", path)
	}
	return nil
}

// sortFiles sorts files and their contents by path.
func sortFiles(files []File, contents [][]byte) ([]File, [][]byte) {
	order := make([]int, len(files))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(files[a].Path, files[b].Path) })
	sorted := make([]File, len(files))
	texts := make([][]byte, len(files))
	for i, at := range order {
		sorted[i], texts[i] = files[at], contents[at]
	}
	return sorted, texts
}
