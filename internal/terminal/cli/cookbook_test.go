//go:build unix

package cli_test

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/docs/guide"
	"raddle.dev/internal/testkit/testneed"
)

// fence matches a block of code: its language and its text.
var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// Every recipe of the cookbook is complete, has no finding, and prints what the page says.
func TestCookbook(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	rates := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("base") != "EUR" || r.URL.Query().Get("symbols") != "CHF" {
			http.Error(w, "no such rate", http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"base": "EUR", "rates": {"CHF": 0.94}}`))
	}))
	defer rates.Close()
	w := newWorkplace(t, "")
	w.env = append(w.env, "RATES_URL="+rates.URL)
	if recipes := runRecipes(t, w, guide.FindTopic("cookbook").Text); recipes < 7 {
		t.Errorf("%d recipes", recipes)
	}
	if r := w.run("run", "-q", "./rate", "EUR XXX"); r.code != 70 || r.out != "The rate is not available now.\n" {
		t.Errorf("a rate that does not exist: exit code %d, %s%s", r.code, r.out, r.err)
	}
}

// The graphs of the guide about failures do what the page says.
func TestFailuresGuide(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "python3")
	var recipes []string
	for _, section := range strings.Split(guide.FindTopic("failures").Text, "\n## ") {
		if strings.Contains(section, "```yaml\n# ") {
			recipes = append(recipes, section)
		}
	}
	if n := runRecipes(t, newWorkplace(t, ""), "\n## "+strings.Join(recipes, "\n## ")); n < 1 {
		t.Errorf("%d recipes", n)
	}
}

// runRecipes writes the files of the sections of a guide that have some, checks their agents, and runs the commands. It returns the number of these
// sections. Each has commands, and their output.
func runRecipes(t *testing.T, w *workplace, text string) int {
	t.Helper()
	recipes := 0
	for _, section := range strings.Split(text, "\n## ")[1:] {
		title, _, _ := strings.Cut(section, "\n")
		agents := map[string]bool{}
		commands := 0
		for _, block := range fence.FindAllStringSubmatch(section, -1) {
			if block[1] != "console" {
				first, _, _ := strings.Cut(block[2], "\n")
				name, ok := strings.CutPrefix(first, "# ")
				if !ok {
					t.Fatalf("%s: a file has no name in its first line: %s", title, first)
				}
				w.write(name, block[2])
				agents[name[:strings.IndexByte(name, '/')]] = true
				continue
			}
			for agent := range agents {
				if r := w.run("check", "--strict", "./"+agent); r.code != 0 || r.out != agent+": ok\n" {
					t.Errorf("%s: check says\n%s%s", title, r.out, r.err)
				}
			}
			for _, command := range strings.Split("\n"+block[2], "\n$ ")[1:] {
				line, want, _ := strings.Cut(strings.TrimSuffix(command, "\n")+"\n", "\n")
				args := splitWords(line)
				r := w.run(append(args[1:2], append([]string{"-q"}, args[2:]...)...)...)
				if commands++; args[0] != "raddle" || r.out != want {
					t.Errorf("%s: %s prints\n%swant\n%s\n%s", title, line, r.out, want, r.err)
				}
			}
		}
		if recipes++; commands == 0 || len(agents) == 0 {
			t.Errorf("%s: %d commands, agents %v", title, commands, agents)
		}
	}
	return recipes
}

// splitWords splits a command line into its words, some of which are in double quotes.
func splitWords(line string) (words []string) {
	for _, m := range regexp.MustCompile(`"([^"]*)"|(\S+)`).FindAllStringSubmatch(line, -1) {
		words = append(words, m[1]+m[2])
	}
	return words
}
