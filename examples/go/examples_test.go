// Package examples_test runs the programs below this directory as their readers do.
package examples_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// build builds all programs into a directory.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	// A separator at the end: a directory also where there is one program only.
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", dir+string(filepath.Separator), "./...")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return dir
}

// output is what a program prints; it must end well and say nothing on stderr.
func output(t *testing.T, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil || complaints.Len() > 0 {
		t.Fatalf("%v: %v\n%s", cmd, err, complaints.String())
	}
	return string(out)
}

func TestExamples(t *testing.T) {
	bin := build(t)
	for _, c := range []struct{ name, want string }{
		{"mapreduce", `The harbour  9 words
The letter   6 words
The end      4 words
19 words at 9 cents: 1.71
done after 3 steps; keys left: cents chapters quote rebate sizes
`},
		{"nested", `step of stay/book/search
stay/book/choose asks: Which room? ["hostel" "hotel"]
the run is waiting
answering stay/book/choose
done: the night train, a bed in the hotel
`},
		{"timetravel", `saturday: rain, museum, [umbrella sandwich]
  record 4: step, then []
  record 3: step, then [pack]
  record 2: step, then [choose]
  record 1: start, then [forecast]
sunday is a copy of saturday at record 2
sunday: sun, lake, [towel sandwich]
  packed: [["umbrella"] ["sandwich"]], now [["towel"] ["sandwich"]]
  place: [museum], now [lake]
  weather: [rain], now [sun]
saturday still goes to the museum
`},
		{"breakpoints", `after improve: guess 1.5000
after improve: error 0.2500, guess 1.4167
before report: error 0.0069, guess 1.4167
done: about 1.417
`},
		{"streams", streams},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, output(t, filepath.Join(bin, c.name))); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("approval", func(t *testing.T) { approval(t, filepath.Join(bin, "approval")) })
	t.Run("toolloop", func(t *testing.T) { toolloop(t, filepath.Join(bin, "toolloop")) })
	t.Run("team", func(t *testing.T) { outing(t, filepath.Join(bin, "team")) })
	t.Run("live", func(t *testing.T) { live(t, filepath.Join(bin, "streams")) })
}

const streams = `graph streams
alto 1: the
alto 2: rain
alto 3: it
alto 4: raineth
alto 5: every
alto 6: day
tenor 1: with
tenor 2: hey
tenor 3: ho
tenor 4: the
tenor 5: wind
tenor 6: and
tenor 7: the
tenor 8: rain
step 0 wrote [text]
step 1 wrote []
done: 14 words from 2 nodes
`

// Each line of the table is a process of its own.
func approval(t *testing.T, program string) {
	asked := func(id, letter string) string {
		return `the run is waiting
` + id + `: Send "` + letter + `"?
Continue with one of ["approve" "reject"], or a change, as the argument.
`
	}
	const first, second = "Dear all,", "Dear all, (make it two lines)"
	const drafting, sent = "drafting …\n", "the run is done\n\"" + second + "\" was sent\n"
	dir := t.TempDir()
	for _, c := range []struct{ answer, want string }{
		{"", drafting + asked("review", first)},
		{"", asked("review", first)}, // nothing is drafted twice
		{"make it two lines", drafting + asked("review#2", second)},
		{"approve", sent},
		{"", sent},
	} {
		if diff := cmp.Diff(c.want, output(t, program, "-dir", dir, c.answer)); diff != "" {
			t.Errorf("%q:\n%s", c.answer, diff)
		}
	}
	if diff := cmp.Diff("the run is done\n\""+first+"\" was rejected\n", rejected(t, program)); diff != "" {
		t.Error(diff)
	}
	if out, err := exec.CommandContext(t.Context(), program, "-dir", dir, "approve").CombinedOutput(); err == nil || !strings.Contains(string(out), "no question is open: the run is done") {
		t.Errorf("an answer to nothing: %v\n%s", err, out)
	}
}

// The second process gives permission; nothing is counted or asked for again.
func toolloop(t *testing.T, program string) {
	const first = `I count first.
  calls count {"article":"bolts"}
  calls count {"article":"nuts"}
There are only four nuts.
  calls order {"article":"nuts","n":100}
May I order {"article":"nuts","n":100}? ["once" "run" "no"]
Continue with one of these as the argument.
the run is waiting
`
	dir := t.TempDir()
	if diff := cmp.Diff(first, output(t, program, "-dir", dir)); diff != "" {
		t.Error(diff)
	}
	const second = "  ordering 100 nuts\nA hundred nuts are on their way.\nthe run is done\n"
	if diff := cmp.Diff(second, output(t, program, "-dir", dir, "once")); diff != "" {
		t.Error(diff)
	}
}

func rejected(t *testing.T, program string) string {
	dir := t.TempDir()
	output(t, program, "-dir", dir)
	return output(t, program, "-dir", dir, "reject")
}

// Live words are the same words, each node's in order; the rest is as without.
func live(t *testing.T, program string) {
	words := map[string][]string{}
	var rest strings.Builder
	for line := range strings.Lines(output(t, program, "-live")) {
		if event, ok := strings.CutPrefix(line, "  event "); ok {
			_, said, _ := strings.Cut(event, ", ")
			node, word, _ := strings.Cut(strings.TrimSpace(said), ": ")
			words[node] = append(words[node], word)
			continue
		}
		rest.WriteString(line)
	}
	want := map[string][]string{
		"alto":  strings.Fields("the rain it raineth every day"),
		"tenor": strings.Fields("with hey ho the wind and the rain"),
	}
	if diff := cmp.Diff(want, words); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(streams, rest.String()); diff != "" {
		t.Error(diff)
	}
}

// The second process answers what one agent asks; an agent that has finished does not run again.
func outing(t *testing.T, program string) {
	const first = `agent_weather_d93a1c6d starts
agent_trains_7d936433 starts
the run is waiting
team/agent_trains_7d936433/act: Which town do you start from?
Continue with the answer as the argument.
`
	const second = `agent_trains_7d936433 continues
the run is done
weather, completed: It is dry until five.
trains, completed: The 8.05 goes there without a change.
Take the 8.05, and be down by five. (7 replies in all)
`
	dir := t.TempDir()
	for _, c := range []struct{ answer, want string }{{"", first}, {"Leeds", second}} {
		if diff := cmp.Diff(c.want, output(t, program, "-dir", dir, c.answer)); diff != "" {
			t.Errorf("%q:\n%s", c.answer, diff)
		}
	}
}
