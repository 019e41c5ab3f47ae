package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// markPlace is where a package says that it has installed raddle: next to the directory of the program. raddle update
// looks there; see FindOrigin of internal/base/release.
const markPlace = "lib/raddle/installed-by"

// makeMark returns the text of a mark: the kind of the package, and what updates it.
func makeMark(kind string) string {
	from := os.Getenv("RADDLE_RELEASES")
	if from == "" {
		from = "where you got it"
	}
	command := map[string]string{
		"deb": "sudo apt-get install ./raddle_NEW_linux_ARCH.deb, from " + from,
		"rpm": "sudo rpm --upgrade raddle_NEW_linux_ARCH.rpm, from " + from,
		"npm": "npm install --global " + npmName() + "@latest",
		"pip": "pip install --upgrade " + pypiName(),
	}[kind]
	return fmt.Sprintf("%s\n%s\n", kind, command)
}

// writeMarks writes the marks of the packages that goreleaser makes, each into a file with its kind as the name.
func writeMarks(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, kind := range []string{"deb", "rpm"} {
		if err := os.WriteFile(filepath.Join(dir, kind), []byte(makeMark(kind)), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// npmName and pypiName are the names of the packages in the registries.
func npmName() string { return valueOr("RADDLE_NPM", "raddle") }

func pypiName() string { return valueOr("RADDLE_PYPI", "raddle") }

func valueOr(variable, other string) string {
	if v := os.Getenv(variable); v != "" {
		return v
	}
	return other
}
