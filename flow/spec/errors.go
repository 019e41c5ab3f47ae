package spec

import "fmt"

// Failf returns an error whose text the file format defines. These texts start
// with a capital letter, unlike other errors of this module.
func Failf(format string, args ...any) error { return fmt.Errorf(format, args...) }
