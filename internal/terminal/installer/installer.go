// Package installer has the scripts that install raddle from its releases: install.sh and install.ps1.
package installer

import (
	"embed"
	"fmt"
	"strings"

	"raddle.dev/internal/base/pattern"
)

//go:embed install.sh install.ps1
var scripts embed.FS

// Names are the names of the scripts.
var Names = []string{"install.sh", "install.ps1"}

// plain matches what may stand between the quotes of both shells.
var plain = pattern.CompileLater(`^[A-Za-z0-9:/._+= -]*$`)

// Render returns a script for the releases at an address, which are signed with a key; the values are those of
// release.Address and release.Key. Empty ones make a script that says so and does nothing.
func Render(name, address, key string) (string, error) {
	text, err := scripts.ReadFile(name)
	if err != nil {
		return "", err
	}
	out := string(text)
	for _, value := range []struct{ variable, text string }{{"releases", address}, {"key", key}} {
		if !plain().MatchString(value.text) {
			return "", fmt.Errorf("%q cannot be written into %s", value.text, name)
		}
		for _, line := range []string{value.variable + "=''\n", "$" + value.variable + " = ''\n"} {
			out = strings.Replace(out, line, strings.Replace(line, "''", "'"+value.text+"'", 1), 1)
		}
	}
	return out, nil
}
