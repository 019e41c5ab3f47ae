//go:build unix

package cloudkey

import (
	"fmt"
	"os"
	"syscall"
)

// checkPrivate returns an error for a file that others may write: what it names would be run in the name of the user.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	if known && int(owner.Uid) != os.Geteuid() && owner.Uid != 0 {
		return fmt.Errorf("%s belongs to another user", path)
	}
	const writableByOthers = 0o022
	if info.Mode().Perm()&writableByOthers != 0 {
		return fmt.Errorf("others may write %s: chmod go-w %[1]s", path)
	}
	return nil
}
