package frontdoor

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// newDoor returns a door of a small program with an agent named helper.
func newDoor(hasInput bool) *Door {
	root := &cobra.Command{Use: "raddle", Args: cobra.ArbitraryArgs}
	root.PersistentFlags().BoolP("quiet", "q", false, "")
	root.PersistentFlags().String("color", "auto", "")
	root.Flags().String("theme", "", "")
	ask := &cobra.Command{Use: "ask", Run: func(*cobra.Command, []string) {}}
	ask.Flags().StringArrayP("file", "f", nil, "")
	ask.Flags().BoolP("continue", "c", false, "")
	ask.Flags().StringP("model", "m", "", "")
	run := &cobra.Command{Use: "run", Run: func(*cobra.Command, []string) {}}
	runs := &cobra.Command{Use: "runs"}
	runs.AddCommand(&cobra.Command{Use: "ls", Run: func(*cobra.Command, []string) {}})
	explain := &cobra.Command{Use: "explain", Run: func(*cobra.Command, []string) {}}
	root.AddCommand(ask, run, runs, explain)
	return &Door{
		Root:     root,
		Ask:      ask,
		Run:      run,
		IsAgent:  func(word string) bool { return word == "helper" || word == "run" },
		HasInput: func() bool { return hasInput },
		Means:    func(word string) string { return map[string]string{"list": "runs ls"}[word] },
	}
}

// What a line means; "_" is a blank within a word, and an empty want is the line itself.
func TestComplete(t *testing.T) {
	tests := []struct {
		line  string
		piped bool
		want  string
	}{
		{line: "what_is_this", want: "ask what_is_this"},
		{line: "-q -m x:y what_is_this", want: "ask -q -m x:y what_is_this"},
		{line: "-mx:y --color=never what_is_this", want: "ask -mx:y --color=never what_is_this"},
		{line: "-- list", want: "ask -- list"},
		{line: "-f docs/ explain", want: "ask -f docs/ explain"},
		{line: "--file=docs/", want: "ask --file=docs/"},
		{line: "-c more", want: "ask -c more"},
		{line: "-c", want: ""},
		{line: "-c", piped: true, want: "ask -c"},
		{line: "explain", piped: true, want: "ask explain"},
		{line: "explain", want: ""},
		{line: "-", want: "ask -"},
		{line: "", piped: true, want: "ask"},
		{line: "", want: ""},
		{line: "rnu", piped: true, want: ""},
		{line: "list", piped: true, want: ""},
		{line: "explain last", piped: true, want: ""},
		{line: "explain 1m8m71p7d473", piped: true, want: ""},
		{line: "explain session/a/b@3", piped: true, want: ""},
		{line: "explain --help", piped: true, want: ""},
		{line: "explain this", want: ""},
		{line: "explain this", piped: true, want: "ask explain this"},
		{line: "helper hello", want: "run helper hello"},
		{line: "-q helper what_is_this", want: "run -q helper what_is_this"},
		{line: "run what_is_this", want: ""},
		{line: "-- helper", want: "ask -- helper"},
		{line: "--theme dark", piped: true, want: ""},
		{line: "--role x what_is_this", want: ""},
		{line: "wibble --help", want: "wibble"},
		{line: "-h wibble -q", want: "wibble -q"},
		{line: "runs wibble --help", want: "runs wibble"},
		{line: "runs --help", want: ""},
		{line: "runs ls --help", want: ""},
		{line: "--help", want: ""},
		{line: "help wibble -h", want: ""},
		{line: "__complete what_is_this", want: ""},
	}
	for _, test := range tests {
		want := test.want
		if want == "" {
			want = test.line
		}
		var args []string
		for _, word := range strings.Fields(test.line) {
			args = append(args, strings.ReplaceAll(word, "_is_", " is "))
		}
		got := strings.ReplaceAll(strings.Join(newDoor(test.piped).CompleteLine(args), " "), " is ", "_is_")
		if got != want {
			t.Errorf("%s (input: %v): %q, want %q", test.line, test.piped, got, want)
		}
	}
}
