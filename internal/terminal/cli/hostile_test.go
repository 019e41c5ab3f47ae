//go:build unix

package cli_test

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/creack/pty"
)

// payloads must not reach a terminal from outside.
var payloads = []string{
	"\x1b]52;c;ZXZpbA==\a", "\x1b]0;owned\x1b\\", "\x1b]8;;http://evil.example\x1b\\here\x1b]8;;\x1b\\", "\x1b[2J", "\x1b[3;4H", "\x1b[5A",
	"\x1b[31m", "\x1b[0m", "\x1bc", "\x1bPq\x1b\\", "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1bXx\x1b\\", "\u009b2J", "\u009d0;t\u009c", "\b\b\b", "\r", "\a",
	"\x00", "\x7f", "\u202e", "\u2066", "\u200f", "\U000E0041", "\x1b", "\x1b[", "\x1b]0;",
}

// ownSequence reports whether raddle writes a sequence itself, outside of forms: for a style, or to move the live lines.
func ownSequence(cmd byte, params string) bool {
	switch cmd {
	case 'm':
		return slices.Contains([]string{"0", "", "1", "2", "31", "32", "33", "36"}, params)
	case 'A', 'B', 'L', 'M':
		n, err := strconv.Atoi(params)
		return err == nil && n > 0 && n < 24
	case 'G':
		n, err := strconv.Atoi(params)
		return params == "" || err == nil && n > 0 && n <= 100
	case 'J', 'K':
		return params == ""
	}
	return false
}

// foreign returns what in a terminal's input raddle has not written itself, and characters that change how others are read.
func foreign(seen string) (found []string) {
	seen = strings.ReplaceAll(seen, "\r\n", "\n") // added by the terminal driver
	p := ansi.NewParser()
	add := func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }
	p.SetHandler(ansi.Handler{
		Print: func(r rune) {
			if strings.ContainsRune("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u200b", r) || r >= 0xE0000 && r <= 0xE01FF {
				add("%U", r)
			}
		},
		Execute: func(b byte) {
			if b != '\n' && b != '\t' && b != '\r' {
				add("control %#x", b)
			}
		},
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			var list []string
			params.ForEach(0, func(_, n int, _ bool) { list = append(list, strconv.Itoa(n)) })
			if list := strings.Join(list, ";"); list == "2026" && cmd.Prefix() == '?' && (cmd.Final() == 'h' || cmd.Final() == 'l') {
				return
			}
			if cmd.Prefix() != 0 || cmd.Intermediate() != 0 || !ownSequence(cmd.Final(), strings.Join(list, ";")) {
				add("CSI %s %c", strings.Join(list, ";"), cmd.Final())
			}
		},
		HandleEsc: func(cmd ansi.Cmd) { add("ESC %c", cmd.Final()) },
		HandleDcs: func(ansi.Cmd, ansi.Params, []byte) { add("DCS") },
		HandleOsc: func(_ int, data []byte) { add("OSC %q", data) },
		HandlePm:  func([]byte) { add("PM") },
		HandleApc: func([]byte) { add("APC") },
		HandleSos: func([]byte) { add("SOS") },
	})
	p.Parse([]byte(seen))
	for i, line := range strings.Split(seen, "\n") { // a return is raddle's own only before the sequence that erases the live lines
		for rest := line; ; {
			_, after, ok := strings.Cut(rest, "\r")
			if !ok {
				break
			}
			if !strings.HasPrefix(after, "\x1b[") {
				add("return in line %d: %q", i+1, line)
			}
			rest = after
		}
	}
	return found
}

// onTerminals runs raddle without a person: the named outputs are terminals, the others pipes.
func (w *workplace) onTerminals(stdout, stderr bool, args ...string) (out, errs string, code int) {
	w.t.Helper()
	cmd := w.command(args...)
	cmd.Env = append(cmd.Env, "TERM=xterm-256color")
	read := func(terminal bool, set func(io.Writer)) (text func() string) {
		if !terminal {
			var b bytes.Buffer
			set(&b)
			return b.String
		}
		master, tty, err := pty.Open()
		if err != nil {
			w.t.Fatal(err)
		}
		if err := pty.Setsize(tty, &pty.Winsize{Rows: 24, Cols: 100}); err != nil {
			w.t.Fatal(err)
		}
		set(tty)
		all := make(chan string)
		go func() {
			b, _ := io.ReadAll(master) // it ends with an error when the other side is closed
			all <- string(b)
		}()
		return func() string {
			_ = tty.Close()
			defer master.Close()
			return <-all
		}
	}
	outText := read(stdout, func(f io.Writer) { cmd.Stdout = f })
	errText := read(stderr, func(f io.Writer) { cmd.Stderr = f })
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return outText(), errText(), cmd.ProcessState.ExitCode()
}

// inQuotes writes a text for YAML.
func inQuotes(text string) string {
	return strconv.QuoteToASCII(text) // whose escapes YAML has too
}

// newHostile creates agents in which a text occurs wherever raddle does not control the text.
func newHostile(t *testing.T, evil string) (w *workplace, dir string) {
	t.Helper()
	w = newReleasedWorkplace(t, "")
	q := func(text string) string { return inQuotes(strings.ReplaceAll(text, "EVIL", evil)) }
	dir = strings.NewReplacer("/", "", "\x00", "").Replace("dir-" + evil + "-end")
	w.write("graph/graph.yaml", `
name: `+q("gEVIL")+`
description: `+q("what EVIL it does")+`
start: say
nodes:
  say: {type: llm, model: "script:transcript.yaml", prompt: `+q("hi EVIL")+`, state_updates: {said: "{{output}}"}, next: run}
  run: {type: script, script: run.sh, next: done}
  done: {type: end, output: "result: {{said}} {{made}} `+"\"}\n")
	w.write("graph/transcript.yaml", "- {text: "+q("a reply EVIL of a model\nnext line EVIL")+"}\n")
	w.write("graph/run.sh", "echo '{\"made\": \"x\"}'; printf '%s\\n' \"$EVIL\" >&2\n")
	w.write("asks/graph.yaml", `
name: asks
start: ask
nodes:
  ask: {type: approval, question: `+q("Really EVIL so?")+`, options: [`+q("oneEVIL")+`, two], routes: {`+q("oneEVIL")+`: done, two: done}, on_other: done}
  done: {type: end, output: over}
`)
	w.write("agent/config.yaml", "name: agent\nmodel: script:transcript.yaml\nglobal_tools: [fs_write]\ninject_user_instructions: false\ndescription: "+q("what EVIL")+"\n")
	w.write("agent/transcript.yaml", `
- {match: go, turn: 1, text: `+q("first EVIL words")+`, tool_calls: [{name: `+q("no_EVIL_tool")+`, args: {a: `+q("bEVIL")+`}}]}
- {match: go, turn: 2, text: `+q("last EVIL words")+`}
- {match: write, turn: 1, tool_calls: [{name: fs_write, args: {path: ../outside.txt, contents: `+q("line EVIL\n")+`}}]}
`)
	w.write("wrong/graph.yaml", `
name: `+q("wrongEVIL")+`
start: `+q("noEVILnode")+`
nodes:
  `+q("aEVILb")+`: {type: llm, prompt: `+q("{{missingEVIL}}")+`, next: `+q("no EVIL")+`, `+q("keyEVIL")+`: 1}
  done: {type: end, output: x}
`)
	w.write(dir+"/graph.yaml", "name: named\nstart: a\nnodes:\n  a: {type: end, output: fine}\n")
	w.write(dir+"/tools.sh", "# @cmd What "+strings.ReplaceAll(evil, "\x00", "")+" does.\ntool() { :; }\n")
	w.write("library/config.yaml", "name: library\nmodel: script:transcript.yaml\ndocuments: [docs]\nembedding_model: keyword\n")
	w.write("library/transcript.yaml", "- {text: x}\n")
	w.write("library/docs/"+strings.NewReplacer("/", "", "\x00", "").Replace("page-"+evil+"-\nx")+".md", "The words of a page "+strings.ReplaceAll(evil, "\x00", "")+" about cats.\n")
	w.write("library/docs/"+strings.NewReplacer("/", "", "\x00", "").Replace("broken-"+evil)+".pdf", "no PDF")
	w.env = append(w.env, "EVIL="+strings.ReplaceAll(evil, "\x00", ""))
	return w, dir
}

// hostileCommands returns commands that show parts of what newHostile created.
func hostileCommands(dir string) [][]string {
	return [][]string{
		{"run", "./graph"}, {"run", "-v", "./graph"}, {"run", "./asks"}, {"run", "./asks", "--answer", "ask=two"}, {"run", "-S", "./agent", "go"}, {"run", "./agent", "go"},
		{"run", "-v", "./agent", "go"}, {"run", "./agent", "write"}, {"run", "./graph", "--output", "json"}, {"run", "./graph", "--output", "stream-json"}, {"run", "./wrong"}, {"run", "./" + dir},
		{"run", "--dry-run", "./graph"}, {"runs", "ls"}, {"runs", "ls", "--tree"}, {"check", "./wrong"}, {"check", "./graph", "./" + dir}, {"check", "./" + dir + "/none"},
		{"graph", "./wrong"}, {"graph", "./graph"}, {"graph", "./asks", "--format", "mermaid"}, {"graph", "./graph", "--format", "dot"}, {"tools", "ls", "./" + dir}, {"tools", "show", "./" + dir, "tool"},
		{"info"}, {"agents", "ls"}, {"rag", "build", "./library"}, {"rag", "search", "./library", "cats"}, {"rag", "status", "./library"},
		{"rag", "rm", "./library"}, {"run", dir}, {"resume", dir}, {"runs", "show", dir}, {dir}, {"run", "--" + dir}, {"tools", "call", dir, "{}"}, {"models", dir}, {"__complete", "run", ""}, {"schema", dir},
	}
}

// Sequences in models' texts, files, names and questions never reach a terminal, whatever is printed; a pipe gets everything.
func TestHostileTexts(t *testing.T) {
	needBash(t)
	random := rand.New(rand.NewPCG(1, 2))
	shuffled := slices.Clone(payloads)
	random.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
	for i, evil := range []string{strings.Join(payloads, "x"), strings.Join(shuffled, "")} {
		t.Run(itoa(i), func(t *testing.T) {
			t.Parallel()
			w, dir := newHostile(t, evil)
			commands := hostileCommands(dir)
			judge := func(args []string) {
				out, errs, code := w.onTerminals(true, true, args...)
				for stream, text := range map[string]string{"stdout": out, "stderr": errs} {
					if found := foreign(text); found != nil {
						t.Errorf("raddle %q (exit code %d): %s: %q\n%q", args, code, stream, found, text)
					}
				}
			}
			for _, args := range commands {
				judge(args)
			}
			// The output of the commands must be there, or the test has tested nothing.
			for _, must := range []struct {
				args []string
				code int
				want string
			}{
				{[]string{"run", "-q", "./graph"}, 0, "next line "}, {[]string{"run", "-q", "./asks"}, 5, "Really"}, {[]string{"run", "-q", "./agent", "go"}, 0, "words"},
				{[]string{"run", "-q", "./agent", "write"}, 5, "+line"}, {[]string{"rag", "build", "./library"}, 0, "broken-"}, {[]string{"rag", "search", "./library", "cats"}, 0, "about cats"},
				{[]string{"runs", "ls"}, 0, "Really "}, {[]string{"check", "./wrong"}, 3, "Start node 'no"}, {[]string{"tools", "ls", "./" + dir}, 0, "What "},
			} {
				out, errs, code := w.onTerminals(true, true, must.args...)
				if code != must.code || !strings.Contains(out+errs, must.want) {
					t.Errorf("raddle %q: exit code %d, want %d, and %q in\n%s%s", must.args, code, must.code, must.want, out, errs)
				}
			}
			for _, run := range w.runs() {
				for _, args := range [][]string{{"runs", "show"}, {"runs", "history"}, {"resume"}} {
					judge(append(args, run.Run))
				}
				judge([]string{"runs", "diff", run.Run + "@1", run.Run})
				judge([]string{"runs", "blame", run.Run, "said"})
			}
		})
	}
}

// Each stream is checked by itself: a pipe gets the result unchanged while messages go to a terminal, and the other way round.
func TestOneStreamIsATerminal(t *testing.T) {
	needBash(t)
	evil := strings.Join(payloads, "x")
	w, _ := newHostile(t, evil)
	const reply = "result: a reply "
	out, errs, code := w.onTerminals(false, true, "run", "./graph")
	errs = strings.ReplaceAll(errs, "\x1b[2m", "")
	if want := reply + evil + " of a model\nnext line " + evil; code != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("a pipe gets %q, want %q (exit code %d)", out, want, code)
	}
	if found := foreign(errs); found != nil || !strings.Contains(errs, "graph done in") {
		t.Errorf("%q in %q", found, errs)
	}
	out, errs, code = w.onTerminals(true, false, "run", "-v", "./agent", "go")
	if found := foreign(out); found != nil || code != 0 || !strings.Contains(out, " words") {
		t.Errorf("%q in %q (exit code %d)", found, out, code)
	}
	if !strings.Contains(errs, "tool failed: ") {
		t.Errorf("stderr: %q", errs)
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cmd := w.command("run", "-q", "./graph")
	cmd.Stdout = f
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(f.Name()); err != nil || !strings.HasPrefix(string(b), reply+evil) {
		t.Errorf("a file gets %q (%v)", b, err)
	}
}

// A form has sequences of its own. Sequences in the question and its options are not among them.
func TestHostileForm(t *testing.T) {
	w, _ := newHostile(t, strings.Join(payloads, "x"))
	s := w.screen([]string{"TERM=xterm-256color"}, "run", "./asks")
	s.await("Really ")
	s.answer(down, enter)
	s.ends(0, "over")
	var found []string
	p := ansi.NewParser()
	p.SetHandler(ansi.Handler{
		Print: func(r rune) {
			if strings.ContainsRune("\u202e\u2066\u200f\U000E0041", r) {
				found = append(found, strconv.QuoteRuneToASCII(r))
			}
		},
		HandleEsc: func(cmd ansi.Cmd) { found = append(found, "ESC "+string(cmd.Final())) },
		HandleDcs: func(ansi.Cmd, ansi.Params, []byte) { found = append(found, "DCS") },
		HandleOsc: func(_ int, data []byte) { found = append(found, "OSC "+string(data)) },
		HandlePm:  func([]byte) { found = append(found, "PM") },
		HandleApc: func([]byte) { found = append(found, "APC") },
		HandleSos: func([]byte) { found = append(found, "SOS") },
		HandleCsi: func(cmd ansi.Cmd, params ansi.Params) {
			if n, _, _ := params.Param(0, 0); cmd.Final() == 'm' && n == 31 || cmd.Final() == 'J' && n == 2 || cmd.Final() == 'A' && n == 5 {
				found = append(found, "CSI "+strconv.Itoa(n)+string(cmd.Final()))
			}
		},
	})
	p.Parse([]byte(s.seen.String()))
	if found != nil || !strings.Contains(joinWords(s.seen.String()), `Really \x1b]52;c;`) {
		t.Errorf("a terminal sees %q in\n%q", found, s.seen)
	}
}
