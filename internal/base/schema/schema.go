// Package schema holds the JSON Schemas of the files that people write, with which editors complete and check them. Its
// tests hold the schemas to what the readers of the files accept.
package schema

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.json
var files embed.FS

// Names are the formats that have a schema, sorted.
var Names = listNames()

// Text returns the schema of a format, or "" if there is none with that name.
func Text(name string) string {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return ""
	}
	return string(text)
}

func listNames() []string {
	entries, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are part of the program
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = strings.TrimSuffix(e.Name(), path.Ext(e.Name()))
	}
	return names
}
