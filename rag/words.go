package rag

import "fmt"

// failf makes an error whose words the file format fixes: they begin with a
// capital letter, unlike other errors of this module.
func failf(format string, args ...any) error { return fmt.Errorf(format, args...) }
