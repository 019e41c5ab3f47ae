package app

import (
	"runtime"
	"runtime/debug"
	"strings"

	"raddle.dev/internal/base/release"
)

// A BuildInfo says what a program was built from, as the Go tool recorded it.
type BuildInfo struct {
	Version  string `json:"version"`            // of the module; "devel" if it was not built from a version
	Commit   string `json:"commit,omitempty"`   // empty if it was built outside of a clone
	Time     string `json:"time,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the clone had changes that were not committed
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ReadBuild returns what this program was built from.
func ReadBuild() BuildInfo {
	b := BuildInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if release.Version != "" {
		b.Version = release.Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	// A version that the Go tool derived from the commit adds nothing to Commit.
	if v := info.Main.Version; release.Version == "" && v != "" && v != "(devel)" && !strings.HasPrefix(v, "v0.0.0-") {
		b.Version = v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// Version returns the version of the program, with the commit if it has no version of its own.
func Version() string {
	b := ReadBuild()
	if b.Version != "devel" || b.Commit == "" {
		return b.Version
	}
	version := "devel " + b.Commit[:min(12, len(b.Commit))]
	if b.Modified {
		version += " modified"
	}
	return version
}
