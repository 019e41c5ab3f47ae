package script

import (
	"errors"
	"io"
	"os"
	"path/filepath"

	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/tempdir"
)

// makeDir makes the directory of the call, which remove removes: in the box if the call must run there.
func (r *scriptCall) makeDir() (remove func(), err error) {
	if p := r.call.Permit; p == nil || !p.Boxed {
		r.dir, remove, err = tempdir.New("tool-*")
		return remove, err
	}
	if r.host.Boxed == nil {
		return nil, errors.New("it may only run in a box, and there is none")
	}
	r.boxed = r.host.Boxed(r.call.Permit)
	root, err := r.boxed.TempDir()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(root, "tool-*")
	r.dir = dir
	return func() { _ = os.RemoveAll(dir) }, err
}

// fetchOutput copies the output of a process that ran in the box to a directory that the box cannot change, which
// becomes that of the call. What is not in the box, but behind a link, is no output: the process may not have been able
// to read it.
func (r *scriptCall) fetchOutput() (remove func(), err error) {
	in, missing := plainfile.OpenBeneath(filepath.Dir(r.dir), filepath.Join(filepath.Base(r.dir), "output"))
	if missing == nil {
		defer in.Close()
	}
	r.dir, remove, err = tempdir.New("tool-*")
	if err != nil || missing != nil {
		return remove, err
	}
	out, err := os.Create(r.callPath("output"))
	if err != nil {
		return remove, err
	}
	_, err = io.Copy(out, io.LimitReader(in, largestJSON))
	return remove, errors.Join(err, out.Close())
}
