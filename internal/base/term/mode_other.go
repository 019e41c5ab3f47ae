//go:build unix && !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd

package term

import "os"

// Other systems keep the terminal's own mode: keys are echoed while a run works.

func disableEcho(*os.File) {}

func readRawKeys(*os.File) {}

func hideInput(*os.File) {}

func discardInput(*os.File) {}
