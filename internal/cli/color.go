package cli

import (
	"os"

	"raddle.dev/internal/term"
)

// applyColors applies --color and the environment to the streams.
func (env *environment) applyColors() error {
	switch env.color {
	case "auto", "always", "never":
	default:
		return badUsage("use auto, always or never", "--color: %q is unknown", env.color)
	}
	env.err.Colors = term.WantsColors(env.color, env.err.IsTerminal(), os.Getenv)
	env.out.Colors = term.WantsColors(env.color, env.out.IsTerminal(), os.Getenv)
	return nil
}
