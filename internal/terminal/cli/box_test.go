//go:build linux && (amd64 || arm64)

package cli_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// boxed is an agent that runs commands which nothing but the box lets run.
const boxed = `
-- home/.ssh/id --
SECRET-KEY
-- home/.gitconfig --
[user]
name = A
email = a@example.com
-- here/a.txt --
one
-- here/do.sh --
echo two >> a.txt
mkdir -p .git/hooks
echo x > .git/hooks/pre-commit
cat ~/.ssh/id
touch $HOME/new
echo code $?
-- here/fetch.sh --
curl -sS http://127.0.0.1:$PORT/ --noproxy '' 2>&1
curl -sS http://nowhere.example/ 2>&1
-- dev/config.yaml --
name: dev
model: script:transcript.yaml
inject_user_instructions: false
global_tools: [execute_command, execute_py_code]
-- dev/transcript.yaml --
- {match: change, turn: 1, tool_calls: [{name: execute_command, args: {command: "sh do.sh"}}]}
- {match: change, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: python, turn: 1, tool_calls: [{name: execute_py_code, args: {code: "open('py.txt', 'w').write('x')\nopen('/etc/raddle-test', 'w')"}}]}
- {match: python, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: outside, turn: 1, tool_calls: [{name: execute_command, args: {command: "make it", outside_box: true}}]}
- {match: outside, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: fetch, turn: 1, tool_calls: [{name: execute_command, args: {command: "sh fetch.sh"}}]}
- {match: fetch, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: wait, turn: 1, tool_calls: [{name: execute_command, args: {command: "X=1; echo half > half.txt; mkfifo p; cat p && echo held-in-the-box"}}]}
- {match: wait, turn: 2, text: "RESULT={{outcome.-1}}"}
`

func newBoxed(t *testing.T) *workplace {
	t.Helper()
	return unpackBoxed(t, boxed)
}

// unpackBoxed unpacks an archive with the directories home and here, in which raddle runs with the box.
func unpackBoxed(t *testing.T, archive string) *workplace {
	t.Helper()
	needBash(t)
	w := newWorkplace(t, archive)
	w.env = slices.DeleteFunc(w.env, func(entry string) bool { return entry == "RADDLE_BOX=false" || strings.HasPrefix(entry, "HOME=") })
	w.env = append(w.env, "HOME="+filepath.Join(w.dir, "home"))
	w.dir = filepath.Join(w.dir, "here")
	return w
}

// Without a person, a command that nothing else lets run does so in the box: it changes the workspace and nothing else.
func TestCommandInTheBox(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	out, err := w.command("run", "--headless", "../dev", "change it").CombinedOutput()
	text := string(out)
	if err != nil || !strings.Contains(text, ".git/hooks/pre-commit git reads programs and places from it") || strings.Contains(text, "SECRET") || !strings.Contains(text, "code 1") {
		t.Errorf("%v: %s", err, text)
	}
	if data, _ := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "one\ntwo\n" {
		t.Errorf("a.txt is %q", data)
	}
	if w.exists(".git/hooks/pre-commit") || w.exists("../home/new") {
		t.Error("the command has changed what it must not")
	}
	out, err = w.command("run", "--headless", "../dev", "python").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "Read-only file system") || !strings.Contains(string(out), "outside_box") || !w.exists("py.txt") {
		t.Errorf("%v: %s", err, out)
	}
}

// What let a call pass only because the box holds it says so, with what the box held back.
func TestWhyOfTheBox(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	if out, err := w.command("run", "-q", "--headless", "../dev", "change it").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r := w.run("runs", "show", "last", "--why")
	for _, want := range []string{"allowed in the box: sh do.sh runs in the box, because nothing else lets it pass", "held back: .git/hooks/pre-commit git reads programs and places from it"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is missing in\n%s%s", want, r.out, r.err)
		}
	}
	w.write("rules.yaml", "ask: [execute_command(sh *)]\n")
	if r := w.run("replay", "last", "--with-rules", "rules.yaml"); r.code != 1 || !strings.Contains(r.out, "box   asks") || !strings.Contains(r.out, "changed: 1") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	w.write("rules.yaml", "allow: [fs_cat]\n")
	if r := w.run("replay", "last", "--with-rules", "rules.yaml"); r.code != 0 || !strings.Contains(r.out, "box   runs") || !strings.Contains(r.out, "changed: 0") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

func TestCommandOutsideTheBoxAsks(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	out, err := w.command("run", "--headless", "../dev", "outside").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "needs the consent of a person") || w.exists("it") {
		t.Errorf("%v: %s", err, out)
	}
	for _, args := range [][]string{{"run", "--headless", "--no-box", "../dev", "change it"}, {"run", "--headless", "--mode", "ask", "../dev", "change it"}} {
		if out, err := w.command(args...).CombinedOutput(); err != nil || strings.Contains(string(out), "code 1") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if data, _ := os.ReadFile(filepath.Join(w.dir, "a.txt")); string(data) != "one\n" {
		t.Errorf("a.txt is %q", data)
	}
}

// In the mode box nothing asks: a command of which nothing is known runs in the box, and what would ask is refused. At a terminal, a command that wants
// out of the box asks. Without a box the mode is an error.
func TestModeBox(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	out, err := w.command("run", "--mode", "box", "../dev", "change it").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "code 1") {
		t.Errorf("%v: %s", err, out)
	}
	out, err = w.command("run", "--mode", "box", "../dev", "outside").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "In the mode box no person is asked") || w.exists("it") {
		t.Errorf("%v: %s", err, out)
	}
	w.write("../.config/raddle/config.yaml", "permission_mode: box\n")
	if out, err = w.command("run", "../dev", "outside").CombinedOutput(); err != nil || !strings.Contains(string(out), "In the mode box no person is asked") {
		t.Errorf("by the configuration: %v: %s", err, out)
	}
	for _, args := range [][]string{{"run", "--no-box", "../dev", "outside"}, {"run", "--no-box", "--mode", "box", "../dev", "outside"}} {
		out, err := w.command(args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no box holds here") || !strings.Contains(string(out), "--mode edits") {
			t.Errorf("%v: %v: %s", args, err, out)
		}
	}
	if out, err = w.command("run", "--headless", "--no-box", "--mode", "edits", "../dev", "change it").CombinedOutput(); err != nil || strings.Contains(string(out), "code 1") {
		t.Errorf("the flag wins over the configuration: %v: %s", err, out)
	}
}

// servePage serves a page on this machine, and returns its address and the port of it.
func servePage(t *testing.T) (at, port string) {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page\n") }))
	t.Cleanup(web.Close)
	at = web.Listener.Addr().String()
	_, port, _ = strings.Cut(at, ":")
	return at, port
}

// A command in the box reaches the hosts that rules allow, and the model reads which others it wanted.
func TestNetworkOfTheBox(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "curl")
	at, port := servePage(t)
	for _, rule := range []string{"", at} {
		w := newBoxed(t)
		w.env = append(w.env, "PORT="+port)
		if rule != "" {
			w.write("../.config/raddle/config.yaml", "permissions: {allow: ['any host("+rule+")']}\n")
		}
		out, err := w.command("run", "--headless", "../dev", "fetch").CombinedOutput()
		text := string(out)
		if err != nil || strings.Contains(text, "the page") != (rule != "") || !strings.Contains(text, "nowhere.example") || !strings.Contains(text, "refused_hosts") {
			t.Errorf("with the rule %q: %v: %s", rule, err, text)
		}
	}
}

// What rules about reading name outside of the workspace is hidden from commands in the box, too.
func TestRulesHideFromTheBox(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	w.write("../home/notes/private/a.txt", "SECRET-A")
	w.write("../home/notes/b.key", "SECRET-B")
	w.write("../home/notes/deep/er/c.key", "SECRET-C")
	w.write("../home/diary.txt", "SECRET-D")
	w.write("../home/notes/open.txt", "OPEN")
	w.write("do.sh", "grep -r . ~/notes ~/diary.txt; cat ~/notes/private/a.txt\n")
	w.write("../.config/raddle/config.yaml", "permissions: {deny: ['any read(~/notes/private)', 'any read(~/notes/**/*.key)'], ask: ['any read(~/diary.txt)']}\n")
	out, err := w.command("run", "--headless", "../dev", "change it").CombinedOutput()
	if err != nil || strings.Contains(string(out), "SECRET") || !strings.Contains(string(out), "OPEN") {
		t.Errorf("%v: %s", err, out)
	}
}

// A command that the box has kept from a host reaches it with the answer of a person, and stays in the box.
func TestHostsOfTheBox(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "curl")
	at, port := servePage(t)
	w := newBoxed(t)
	w.env = append(w.env, "PORT="+port)
	w.write("fetch.sh", "curl -sS http://127.0.0.1:$PORT/ --noproxy ''\ncurl -sS http://nowhere.example/\ntouch ~/new\n")
	w.write("../dev/transcript.yaml", strings.ReplaceAll(`
- {match: fetch, turn: 1, tool_calls: [{name: execute_command, args: {command: "sh fetch.sh"}}]}
- {match: fetch, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: reach, turn: 1, tool_calls: [{name: execute_command, args: {command: "sh fetch.sh", hosts: "AT"}}]}
- {match: reach, turn: 2, text: "RESULT={{outcome.-1}}"}
- {match: wrong, turn: 1, tool_calls: [{name: execute_command, args: {command: "sh fetch.sh", hosts: "http://AT/"}}]}
- {match: wrong, turn: 2, text: "RESULT={{outcome.-1}}"}
`, "AT", at))
	out, err := w.command("run", "--headless", "../dev", "fetch").CombinedOutput()
	if text := string(out); err != nil || strings.Contains(text, "the page") || !strings.Contains(text, at) || !strings.Contains(text, "call again with hosts") {
		t.Errorf("%v: %s", err, out)
	}
	for _, prompt := range []string{"reach", "wrong"} {
		if out, err = w.command("run", "--headless", "../dev", prompt).CombinedOutput(); err != nil || strings.Contains(string(out), "the page") {
			t.Errorf("without a person: %v: %s", err, out)
		}
	}
	if !strings.Contains(string(out), "is not the name of a host") {
		t.Errorf("a wrong name: %s", out)
	}
	r := w.run("run", "../dev", "reach")
	if r.code == 0 || !strings.Contains(r.out+r.err, at+" is this machine") {
		t.Fatalf("it does not ask about the host: %s%s", r.out, r.err)
	}
	out, err = w.command("resume", w.runs()[0].Run, "--answer", "once").CombinedOutput()
	if text := string(out); err != nil || !strings.Contains(text, "the page") || !strings.Contains(text, "nowhere.example") || w.exists("../home/new") {
		t.Errorf("%v: %s", err, out)
	}
}

// An answer that lets a command reach a host from the box does not let it run where there is no box any more.
func TestAnswerForTheBoxOnly(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	w.write("../dev/transcript.yaml", `
- {match: reach, turn: 1, tool_calls: [{name: execute_command, args: {command: "touch $HOME/ran made", hosts: "one.example"}}]}
- {match: reach, turn: 2, text: "RESULT={{outcome.-1}}"}
`)
	if r := w.run("run", "../dev", "reach"); r.code != 5 || !strings.Contains(r.err, "one.example is on the network") {
		t.Fatalf("it does not ask about the host: %s%s", r.out, r.err)
	}
	run := w.runs()[0].Run
	env := w.env
	w.env = append(slices.Clone(env), "RADDLE_BOX=false")
	r := w.run("resume", run, "--answer", "once")
	if w.exists("../home/ran") || w.exists("made") || !strings.Contains(r.out+r.err, "has changed since the user was asked") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
	w.env = env
	if r := w.run("run", "../dev", "reach", "--answer", "once"); r.code != 0 || w.exists("../home/ran") || !w.exists("made") {
		t.Errorf("exit code %d: %s%s", r.code, r.out, r.err)
	}
}

// Of a command that is cut off by the end of raddle, nothing is in the workspace, and no process is left.
func TestKilledInTheBox(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	cmd := w.command("run", "--headless", "../dev", "wait")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	half := filepath.Join(w.dir, "..", ".state", "raddle", "boxes", "*", "*", "*", "upper", "half.txt")
	await(t, "the command has begun", func() bool { found, _ := filepath.Glob(half); return len(found) == 1 })
	await(t, "the command runs", func() bool { return runsCommand("held-in-the-box") })
	if err := cmd.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	await(t, "the command has ended", func() bool { return !runsCommand("held-in-the-box") })
	if w.exists("half.txt") || w.exists("p") {
		t.Error("the workspace has a half of what the command does")
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	if !holdsInTime(holds) {
		t.Fatalf("waited for a minute until %s", what)
	}
}

// holdsInTime waits until a condition holds that another process makes true, for a minute at most.
func holdsInTime(holds func() bool) bool {
	limit := time.After(time.Minute)
	for tick := time.Tick(5 * time.Millisecond); !holds(); {
		select {
		case <-tick:
		case <-limit:
			return false
		}
	}
	return true
}

// runsCommand reports whether a process has a text in its arguments.
func runsCommand(text string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	return slices.ContainsFunc(all, func(path string) bool {
		data, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(data), text)
	})
}

// With a box, a new user is not asked about a file of the working directory, and not about tests.
func TestFirstHourInTheBox(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	m := startChatModel(t)
	w := unpackBoxed(t, "-- home/a --\n-- here/test.sh --\n[ \"$(cat cart)\" = 3 ] && echo PASSED || echo FAILED\n")
	w.env = append(w.env, atHome(m)...)
	initAssistant(w, "is saved as your model", "a box holds here", "raddle config set permission_mode ask")

	s := w.chat(columns)
	s.shows(columns, chatPrompt)
	s.press(`call fs_write {"path":"cart","contents":"3"}`, enter)
	s.shows(columns, "The tool said:")
	s.idleAt(columns)
	s.press(`call execute_command {"command":"bash test.sh"}`, enter)
	s.shows(columns, "    PASSED")
	s.idleAt(columns)
	s.press("\x1b[Z") // Shift-Tab
	s.shows(columns, "Permission mode: box")
	s.press(`call execute_command {"command":"echo x > ../new"}`, enter)
	s.shows(columns, "permission denied: not permitted: ../new")
	s.idleAt(columns)
	s.leave()
	if w.exists("../new") {
		t.Error("the command has written outside of its directory")
	}

	w.env = append(w.env, "RADDLE_BOX=false")
	s = w.chat(columns)
	s.shows(columns, chatPrompt)
	s.press("/mode box", enter)
	s.shows(columns, "no box holds here")
	s.leave()
}

// At a terminal, in the mode box, a command that wants out of the box asks, and a write to a place that no box holds does not.
func TestModeBoxAtATerminal(t *testing.T) {
	t.Parallel()
	w := newBoxed(t)
	s := w.screen([]string{"TERM=xterm-256color", "NO_COLOR=1"}, "run", "--mode", "box", "../dev", "outside")
	awaitAll(s, "wants to run a command outside of the box", "make it")
	s.answer(enter) // no
	s.ends(0, "RESULT=")
	if w.exists("it") {
		t.Error("it ran")
	}
}
