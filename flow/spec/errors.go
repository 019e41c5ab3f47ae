package spec

import "fmt"

// Errorf returns an error whose text the file format defines. These texts start
// with a capital letter, unlike other errors of this module.
func Errorf(format string, args ...any) error { return fmt.Errorf(format, args...) }
