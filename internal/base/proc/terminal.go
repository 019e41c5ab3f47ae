package proc

import "os"

// A Terminal is lent to a child while it runs: the child reads the keyboard, and what it writes appears on the screen.
// None of it is captured. If the terminal controls this process, the child's group is its foreground group, so that
// Ctrl-C and Ctrl-Z go to the child; this process has the terminal again before Run returns, however the child ends.
type Terminal struct {
	In  *os.File // the child's stdin
	Out *os.File // the child's stdout and stderr
	// Suspended is called when the child was stopped (Ctrl-Z). This process has the terminal meanwhile. The child
	// continues when Suspended returns, for which this process must be in the foreground; nil: it continues at once.
	// Only Linux reports that a child was stopped.
	Suspended func()
}
