package bundle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// manifestFile records what was installed in a directory of agents.
const manifestFile = ".bundle.json"

// A manifest holds the checksum of each file as it was installed, so that raddle can
// distinguish a change of the user from an older version.
type manifest struct {
	About string            `json:"about"`
	Files map[string]string `json:"files"` // AGENT/FILE, with slashes, to the SHA-256 of its text in hex
}

// readManifest reads the manifest of a directory; a missing one has no files.
func readManifest(dir string) (*manifest, error) {
	m := &manifest{}
	name := filepath.Join(dir, manifestFile)
	text, err := os.ReadFile(name)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, m); err != nil {
			return nil, fmt.Errorf("%s: %w: remove the file, then install the agents again", name, err)
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	m.About = "What raddle has installed here. raddle agents install uses it to find the files that you have changed."
	if m.Files == nil {
		m.Files = map[string]string{}
	}
	return m, nil
}

func (m *manifest) write(dir string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(filepath.Join(dir, manifestFile), file{name: manifestFile, text: append(text, '\n')})
}

// hasUnit reports whether files of a directory were installed.
func (m *manifest) hasUnit(unit string) bool { return len(m.unitFiles(unit)) > 0 }

// unitFiles returns the files of a directory that were installed, sorted.
func (m *manifest) unitFiles(unit string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(m.Files)) {
		if name, ok := strings.CutPrefix(key, unit+"/"); ok && filepath.IsLocal(filepath.FromSlash(name)) {
			names = append(names, name)
		}
	}
	return names
}

// isChanged reports whether a text differs from the one that was installed. A text that
// existed before, or that a process installed without recording it, counts as the
// user's own.
func (m *manifest) isChanged(key string, text []byte) bool {
	if installed, ok := m.Files[key]; ok {
		return installed != computeDigest(text)
	}
	return true
}

func computeDigest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
