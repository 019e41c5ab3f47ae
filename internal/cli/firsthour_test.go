//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"raddle.dev/internal/term/termtest"
	"raddle.dev/internal/testneed"
)

// The first hour of a new user, with the assistant that comes with raddle: the setup, a first question, a file that is changed with a
// diff, tests that the shell tool runs, a message that is taken back, the conversation after a restart, and a graph whose question
// is answered in place.
func TestFirstHour(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	m := startChatModel(t)
	w := newWorkplace(t, chatAgents)
	w.env = append(w.env, "OPENAI_API_BASE="+m.url+"/v1", "OPENAI_API_KEY="+testKey, "OLLAMA_HOST=127.0.0.1:1", "SHELL=/bin/sh", "TERM=xterm-256color")
	w.write("cart.sh", "total() {\n  echo $(( $1 * 2 ))\n}\n")
	w.write("test.sh", ". ./cart.sh\n[ \"$(total 2)\" = 6 ] && echo PASSED || echo FAILED\n")

	s := w.chat(columns, "init")
	s.await("Which model shall raddle use? (found: OPENAI_API_KEY)")
	s.answer(enter)
	s.await("Send one short request")
	s.answer(enter)
	s.await("Create a first agent")
	s.answer(down, enter)
	s.ends(0, "")

	s = w.chat(columns)
	s.shows(columns, chatPrompt)
	s.shows(columns, "raddle · assistant")
	s.press("What is in cart.sh?", enter)
	s.shows(columns, "heard: What is in cart.sh?")
	s.idle()

	s.press(`call fs_write {"path":"cart.sh","contents":"total() {\n  echo $(( $1 * 3 ))\n}\n"}`, enter)
	s.await("cart.sh")
	s.answer("1")
	s.shows(columns, "+   echo $(( $1 * 3 ))")
	s.idle()
	s.press(`call execute_command {"command":"bash test.sh"}`, enter)
	s.await("bash test.sh")
	s.answer("1")
	s.shows(columns, "    PASSED")
	s.idle()

	s.press("a message that was a mistake", enter)
	s.shows(columns, "heard: a message that was a mistake")
	s.idle()
	s.press("/undo", enter)
	s.shows(columns, "Took back 1 message")
	s.press("/name cart", enter)
	s.shows(columns, "raddle -s cart")
	s.leave()

	s = w.chat(columns, "-s", "cart")
	s.shows(columns, `Continuing "cart", 3 messages.`)
	s.press("/run ./asks a page", enter)
	s.await("Print a page?")
	s.answer(enter)
	s.shows(columns, "RESULT=yes")
	s.shows(columns, chatPrompt)
	s.press("Good. What did we do?", enter)
	s.shows(columns, "heard: Good. What did we do?")
	s.idle()
	shown := termtest.Render(columns, s.seen.String())
	s.leave()
	if strings.Contains(shown, "a mistake") {
		t.Errorf("what was taken back is shown:\n%s", shown)
	}
	all := m.requests()
	if last := all[len(all)-1]; strings.Contains(last, "a mistake") || !strings.Contains(last, "PASSED") {
		t.Errorf("the last request: %s", last)
	}
	if got, err := os.ReadFile(filepath.Join(w.dir, "cart.sh")); err != nil || !strings.Contains(string(got), "* 3") {
		t.Errorf("cart.sh: %q, %v", got, err)
	}
}
