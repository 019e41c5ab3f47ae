package load

import "fmt"

// failf returns an error whose text the file format fixes: it begins with a capital letter, unlike
// other errors of this module.
func failf(format string, args ...any) error { return fmt.Errorf(format, args...) }
