//go:build !unix

package chaos

import (
	"context"

	"raddle.dev/internal/base/failure"
)

// Execute refuses: this system can neither freeze a process nor end one as a power failure does.
func (c *Command) Execute(context.Context) (*Report, error) {
	return nil, failure.NewUsage("run it on Linux or macOS", "raddle chaos needs signals of Unix")
}
