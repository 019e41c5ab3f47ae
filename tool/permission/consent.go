package permission

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"raddle.dev/internal/base/plainfile"
)

// Consents remember for which directories a person agreed that raddle may use the scripts and rules
// that it found there, without a configuration that names them. A consent covers the files as they
// were; when one of them changes, raddle asks again. The zero value remembers nothing.
// The file maps directories, with symbolic links followed, to digests. It is read at each call, so
// that the answers of other processes count.
type Consents struct {
	Path string // of the file that holds them; it need not exist
}

// HasConsent reports whether there is a consent for a directory with this digest, which is the
// digest of its files now.
func (c Consents) HasConsent(dir, digest string) (bool, error) {
	dir, err := resolveAbs(dir)
	if err != nil {
		return false, fmt.Errorf("look up a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return false, fmt.Errorf("look up a consent: %w", err)
	}
	given, ok := known[dir]
	return ok && given == digest, nil
}

// RecordConsent records the consent for a directory with the digest that the person was
// asked about.
func (c Consents) RecordConsent(dir, digest string) error {
	dir, err := resolveAbs(dir)
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	known[dir] = digest
	text, err := json.MarshalIndent(known, "", "  ")
	if err == nil {
		err = replaceFile(c.Path, append(text, '\n'))
	}
	if err != nil {
		return fmt.Errorf("record a consent: %w", err)
	}
	return nil
}

// refused is recorded in place of a digest.
const refused = "no"

// RecordRefusal records that a person does not want a directory to be used, so that raddle does not
// ask again.
func (c Consents) RecordRefusal(dir string) error { return c.RecordConsent(dir, refused) }

// LookUpConsent returns what is recorded for a directory: a digest to compare with that of its
// files, whether it was refused, or neither.
func (c Consents) LookUpConsent(dir string) (digest string, no bool, err error) {
	dir, err = resolveAbs(dir)
	if err != nil {
		return "", false, fmt.Errorf("look up a consent: %w", err)
	}
	known, err := c.loadConsents()
	if err != nil {
		return "", false, fmt.Errorf("look up a consent: %w", err)
	}
	if known[dir] == refused {
		return "", true, nil
	}
	return known[dir], false, nil
}

// maxFile is the size in bytes of the largest file of rules or consents that is read.
const maxFile = 16 << 20

// loadConsents reads the file. A damaged one is an error: an empty answer would ask again for
// everything and then replace what the file holds.
func (c Consents) loadConsents() (map[string]string, error) {
	known := map[string]string{}
	text, err := plainfile.Read(c.Path, maxFile)
	if errors.Is(err, fs.ErrNotExist) || c.Path == "" {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, &known); err != nil {
		return nil, fmt.Errorf("%s: %w: delete the file to be asked again", c.Path, err)
	}
	return known, nil
}

// resolveAbs returns the absolute path of a directory with symbolic links followed.
func resolveAbs(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return resolvePath(dir)
}
