package repository_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestProgramsOfTheReadme compares the packages that the README names for the tests with the list that CI uses.
func TestProgramsOfTheReadme(t *testing.T) {
	list, err := os.ReadFile(".ci/programs")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(list)) {
		if head, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			group, name, _ := strings.Cut(head, " ")
			packages[group] = append(packages[group], name)
		}
	}
	for command, want := range map[string][]string{
		"make test":     packages["base"],
		"make test-all": slices.Concat(packages["extra"], packages["optional"]),
	} {
		got := packagesOfCommand(string(readme), command)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" || len(got) == 0 {
			t.Errorf("README.md and .ci/programs differ in what `%s` needs (-.ci/programs +README.md):\n%s", command, diff)
		}
	}
}

// packagesOfCommand returns the packages in the last cell of the command's row of the table, sorted.
func packagesOfCommand(readme, command string) []string {
	var names []string
	for line := range strings.Lines(readme) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || strings.TrimSpace(cells[1]) != "`"+command+"`" {
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[3], -1) {
			names = append(names, name[1])
		}
	}
	slices.Sort(names)
	return names
}
