package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"raddle.dev/internal/base/failure"
)

// A Replacement is a new file next to the program, which takes its place at once or not at all.
type Replacement struct {
	program string
	file    *os.File
}

// PrepareReplacement creates the new file, so that a directory that cannot be written is known before anything is
// fetched.
func PrepareReplacement(program string) (*Replacement, error) {
	info, err := os.Stat(program)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, failure.NewInvalid("install raddle again: raddle help install", "%s is not a regular file", program)
	}
	removeOld(program)
	file, err := os.CreateTemp(filepath.Dir(program), ".raddle-update-*")
	if err != nil {
		return nil, failure.NewInvalid("run it as the user who owns the directory, or install raddle into one of yours: raddle help install",
			"nothing was changed: %s cannot be written: %v", filepath.Dir(program), errors.Unwrap(err))
	}
	r := &Replacement{program: program, file: file}
	if err := file.Chmod(info.Mode().Perm()); err != nil {
		r.Discard()
		return nil, err
	}
	return r, nil
}

// Commit writes the content, and makes it the program in one step. The running process keeps the old file.
func (r *Replacement) Commit(content []byte) error {
	_, err := r.file.Write(content)
	if err = errors.Join(err, r.file.Sync(), r.file.Close()); err == nil {
		err = putInPlace(r.file.Name(), r.program)
	}
	if err != nil {
		_ = os.Remove(r.file.Name()) // the error counts
		return fmt.Errorf("nothing was changed: %w", err)
	}
	return nil
}

// Discard removes the new file.
func (r *Replacement) Discard() {
	_ = r.file.Close()           // nothing was written
	_ = os.Remove(r.file.Name()) // a leftover is harmless
}
