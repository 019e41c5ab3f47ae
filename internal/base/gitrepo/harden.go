package gitrepo

import (
	"strconv"

	"raddle.dev/internal/base/environ"
)

// hardened are the settings with which git takes no program from a repository that it merely finds: a directory that
// only looks like a repository is none, and neither a monitor of the file system nor a hook runs.
var hardened = [][2]string{{"safe.bareRepository", "explicit"}, {"core.fsmonitor", "false"}, {"core.hooksPath", "/dev/null"}}

// HardenEnvironment returns an environment in which git runs no hook, asks no monitor of the file system and uses no
// repository without a .git, whatever the configuration of a repository says. Settings that the environment already has
// stay, but these come last and win. The slice that is passed in does not change.
func HardenEnvironment(env []string) []string { return addSettings(env, hardened) }

// addSettings returns an environment with further settings of git, after those that it already has.
func addSettings(env []string, settings [][2]string) []string {
	const counter = "GIT_CONFIG_COUNT"
	count := 0
	out := make([]string, 0, len(env)+2*len(settings)+1)
	for _, pair := range env {
		if name, value, _ := environ.SplitPair(pair); environ.FoldName(name) == counter {
			// git refuses a number that it cannot read; such a one is replaced, and its settings do not count.
			count, _ = strconv.Atoi(value)
			count = max(count, 0)
			continue
		}
		out = append(out, pair)
	}
	for _, setting := range settings {
		n := strconv.Itoa(count)
		out = append(out, "GIT_CONFIG_KEY_"+n+"="+setting[0], "GIT_CONFIG_VALUE_"+n+"="+setting[1])
		count++
	}
	return append(out, counter+"="+strconv.Itoa(count))
}
