package release

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// oldMark is in the names of programs that were replaced while they ran.
const oldMark = ".raddle-old-"

// putInPlace moves the running program aside, because Windows allows neither to write nor to remove it, and gives its
// name to the new one. The name of the old one is new each time: an earlier one may still run.
func putInPlace(file, program string) error {
	old := filepath.Join(filepath.Dir(program), oldMark+strconv.FormatInt(time.Now().UnixNano(), 36)+".exe")
	if err := os.Rename(program, old); err != nil {
		return err
	}
	if err := os.Rename(file, program); err != nil {
		return errors.Join(err, os.Rename(old, program))
	}
	_ = os.Remove(old) // works where it does not run
	return nil
}

// removeOld removes the programs that earlier updates moved aside, as far as they have ended.
func removeOld(program string) {
	list, _ := filepath.Glob(filepath.Join(filepath.Dir(program), oldMark+"*.exe"))
	for _, old := range list {
		_ = os.Remove(old) // one that still runs is removed later
	}
}
