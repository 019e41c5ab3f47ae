package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// codePlaces are the ways in which the server writes the code of a problem.
var codePlaces = regexp.MustCompile(`http\.Status\w+, "([a-z-]+)"|refuse(?:Login|Stranger)\(w, r, "([a-z-]+)"|http\.Status\w+:\s+"([a-z-]+)"|takeOne\(.*"(too-[a-z-]+)"|QuotaError\{Code: "([a-z-]+)"`)

// The guide names each code of a problem, so that a program can be written against it.
func TestGuideNamesEachCode(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/server.md")
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]string{}
	for _, dir := range []string{".", "../gateway"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, found := range codePlaces.FindAllStringSubmatch(string(text), -1) {
				codes[strings.Join(found[1:], "")] = file
			}
		}
	}
	const least = 35 // fewer: the expression finds them no longer
	if len(codes) < least {
		t.Errorf("%d codes were found: %v", len(codes), codes)
	}
	for code, file := range codes {
		if !strings.Contains(string(guide), "`"+code+"`") {
			t.Errorf("%s writes the code %s, and docs/guide/server.md does not name it", file, code)
		}
	}
}
