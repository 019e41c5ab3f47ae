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

// manifestFile says what was installed in a directory of agents.
const manifestFile = ".bundle.json"

// manifest knows each file as it was when it was installed, so that a change of the
// user's can be told from an older version.
type manifest struct {
	About string            `json:"about"`
	Files map[string]string `json:"files"` // AGENT/FILE, with slashes, to the SHA-256 of its text in hex
}

// readManifest reads a directory's manifest; one that is missing knows no files.
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
	m.About = "What raddle has installed here: raddle agents install tells by it which files you have changed."
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
	return replace(filepath.Join(dir, manifestFile), file{name: manifestFile, text: append(text, '\n')})
}

// knows tells whether files of a directory were installed.
func (m *manifest) knows(unit string) bool { return len(m.of(unit)) > 0 }

// of lists the files of a directory that were installed, sorted.
func (m *manifest) of(unit string) (names []string) {
	for _, key := range slices.Sorted(maps.Keys(m.Files)) {
		if name, ok := strings.CutPrefix(key, unit+"/"); ok && filepath.IsLocal(filepath.FromSlash(name)) {
			names = append(names, name)
		}
	}
	return names
}

// changed tells whether a text is another than the one that was installed. What
// was there before, or was installed by a process that could not say so, is
// taken for the user's.
func (m *manifest) changed(key string, text []byte) bool {
	if installed, ok := m.Files[key]; ok {
		return installed != digest(text)
	}
	return true
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
