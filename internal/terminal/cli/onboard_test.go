//go:build unix

package cli_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"raddle.dev/internal/testkit/llmtest"
	"raddle.dev/internal/testkit/testneed"
)

// newcomer is an agent without a model, and nothing else.
const newcomer = `
-- one/config.yaml --
name: one
instructions: You answer in one word.
conversation_starters: [Who are you?]
`

const testKey = "sk-test-0123456789abcdef"

// A fakeProvider is a server that speaks OpenAI's wires and Ollama's.
type fakeProvider struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string // of the requests
	models []string
}

// newFakeProvider starts a provider that answers each request with the name of its model. It accepts only testKey, and no key.
func newFakeProvider(t *testing.T) *fakeProvider {
	p := &fakeProvider{}
	answer := func(body []byte) (llmtest.Turn, int) {
		var r struct{ Model string }
		if err := json.Unmarshal(body, &r); err != nil {
			t.Error(err)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.models = append(p.models, r.Model)
		return llmtest.Turn{Text: "I am " + r.Model + "."}, http.StatusOK
	}
	chat, responses, local := llmtest.OpenAI().NewHandler(answer), llmtest.OpenAIResponses().NewHandler(answer), llmtest.Ollama().NewHandler(answer)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/tags", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"models":[{"name":"qwen3:8b"},{"name":"gemma3:4b"}]}`)
	})
	mux.HandleFunc("GET /v1/models", func(w http.ResponseWriter, r *http.Request) {
		if key := r.Header.Get("Authorization"); key != "Bearer "+testKey {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"small"},{"id":"large"}]}`)
	})
	mux.HandleFunc("POST /", func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		p.mu.Lock()
		p.keys = append(p.keys, key)
		p.mu.Unlock()
		if key != testKey && key != "" {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error"}}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/responses") {
			responses.ServeHTTP(w, r)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/") {
			local.ServeHTTP(w, r)
			return
		}
		chat.ServeHTTP(w, r)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// environ returns the variables that lead raddle to the provider.
func (p *fakeProvider) environ() []string {
	return []string{"OPENAI_API_BASE=" + p.URL, "OLLAMA_HOST=" + p.URL}
}

// last returns the model and the key of the last request.
func (p *fakeProvider) last() (model, key string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.models) == 0 {
		return "", ""
	}
	return p.models[len(p.models)-1], p.keys[len(p.keys)-1]
}

// requireNoKeychain skips a test that would write to the keychain of the person who runs it.
func requireNoKeychain(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("this system has a keychain, which the test would change")
	}
}

// mode returns the permissions of a file.
func (w *workplace) mode(name string) os.FileMode {
	w.t.Helper()
	info, err := os.Stat(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return info.Mode().Perm()
}

// Without a model, a terminal asks for one, and saves it.
func TestChooseModel(t *testing.T) {
	const configFile, keyFile = ".config/raddle/config.yaml", ".config/raddle/keys.json"
	tests := map[string]struct {
		env    []string
		config string // before
		keys   func(s *screen)
		model  string // in config.yaml
		output string
		called string // the model that the provider saw
	}{
		"the first model of a found key": {
			env: []string{"OPENAI_API_KEY=" + testKey},
			keys: func(s *screen) {
				s.await("(found: OPENAI_API_KEY)")
				s.await("openai:gpt-5.4-mini  400k context     $0.75 / $4.50 per million tokens")
				s.await("local, running")
				s.answer(enter)
				s.await("openai:gpt-5.4-mini is saved as your model in .config/raddle/config.yaml.")
			},
			model: "openai:gpt-5.4-mini", output: "I am gpt-5.4-mini.", called: "gpt-5.4-mini",
		},
		"a local server": {
			keys: func(s *screen) {
				s.await("ollama:gemma3:4b  local, running")
				s.answer(down, enter)
			},
			model: "ollama:qwen3:8b", output: "I am qwen3:8b.", called: "qwen3:8b",
		},
		"another model": {
			env: []string{"OPENAI_API_KEY=" + testKey},
			keys: func(s *screen) {
				s.await("Another model …")
				s.answer(down, down, down, down, down, enter)
				s.answer("opnai:x", enter)
				s.await(`there is no client "opnai"`)
				s.answer("openai:gpt-4.1", enter)
			},
			model: "openai:gpt-4.1", output: "I am gpt-4.1.", called: "gpt-4.1",
		},
		"another provider, with its key": {
			config: "# mine\n\ntemperature: 0.5 # warm\n",
			keys: func(s *screen) {
				s.await("Another provider …")
				s.answer(down, down, down, enter)
				s.await("needs a key (OPENAI_API_KEY)")
				s.answer(enter)
				s.await("Key of openai (it is not shown): ")
				s.answer(testKey, enter)
				s.await("The key of openai is stored in .config/raddle/keys.json, which only you can read.")
				s.await("Which model?")
				s.answer(down, enter)
			},
			model: "openai:gpt-5.5", output: "I am gpt-5.5.", called: "gpt-5.5",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if test.config != "" {
				requireNoKeychain(t)
			}
			p, w := newFakeProvider(t), newWorkplace(t, newcomer)
			if test.config != "" {
				w.write(configFile, test.config)
			}
			s := w.screen(append(p.environ(), test.env...), "run", "./one", "Who are you?")
			s.await("No model is set. Which one shall raddle use?")
			test.keys(s)
			s.ends(0, test.output)
			if got, want := w.read(configFile), test.config+"model: "+test.model+"\n"; got != want {
				t.Errorf("config.yaml is\n%s\nwant\n%s", got, want)
			}
			if test.config == "" && w.mode(configFile) != 0o600 {
				t.Errorf("config.yaml has mode %o", w.mode(configFile))
			}
			if model, _ := p.last(); model != test.called {
				t.Errorf("the provider was asked for %q", model)
			}
			if strings.Contains(s.seen.String(), testKey) {
				t.Errorf("the terminal shows the key:\n%s", s.seen)
			}
			if name == "another provider, with its key" && (w.mode(keyFile) != 0o600 || !strings.Contains(w.read(keyFile), testKey)) {
				t.Errorf("%s has mode %o:\n%s", keyFile, w.mode(keyFile), w.read(keyFile))
			}
		})
	}
}

// Another address is asked for its models, and becomes a client of config.yaml; its key is stored.
func TestChooseAddress(t *testing.T) {
	requireNoKeychain(t)
	const configFile, keyFile = ".config/raddle/config.yaml", ".config/raddle/keys.json"
	p, w := newFakeProvider(t), newWorkplace(t, newcomer)
	w.write(configFile, "# mine\ntheme: dark # as at home\n")
	s := w.screen([]string{"OLLAMA_HOST=127.0.0.1:1"}, "run", "./one", "Who are you?")
	s.await("What shall raddle use?")
	s.answer(strings.Repeat(down, 8), enter)
	s.await("Address, such as localhost:8080/v1: ")
	s.answer("127.0.0.1:1/v1", enter)
	s.await("Key (it is not shown; Enter: none): ")
	s.answer(enter)
	s.await("http://127.0.0.1:1/v1 cannot be reached")
	s.awaitNext("Address, such as localhost:8080/v1: ")
	s.answer(strings.TrimPrefix(p.URL, "http://"), enter)
	s.answer(enter)
	s.await("the server wants a valid key (status 401)")
	s.answer("{{MY_KEY}}", enter)
	s.await("this can be no key: it names a variable")
	s.answer(testKey, enter)
	s.await("has 2 models.")
	s.answer(down, enter)
	s.await(`The client "local" is added to .config/raddle/config.yaml.`)
	s.ends(0, "I am small.")
	want := "# mine\ntheme: dark # as at home\nclients:\n  - name: local\n    type: openai-compatible\n    api_base: " + p.URL + "/v1\nmodel: local:small\n"
	if got := w.read(configFile); got != want {
		t.Errorf("config.yaml is\n%s", got)
	}
	if model, key := p.last(); model != "small" || key != testKey {
		t.Errorf("model %q was called with key %q", model, key)
	}
	if strings.Contains(s.seen.String(), testKey) || !strings.Contains(w.read(keyFile), testKey) {
		t.Errorf("%s\n%s", s.seen, w.read(keyFile))
	}
}

// A key goes to another machine over plain HTTP only after a yes.
func TestChooseAddressOverPlainHTTP(t *testing.T) {
	w := newWorkplace(t, newcomer)
	s := w.screen([]string{"OLLAMA_HOST=127.0.0.1:1"}, "run", "./one", "Who are you?")
	s.await("What shall raddle use?")
	s.answer(strings.Repeat(down, 8), enter)
	s.answer("http://gateway.invalid/v1", enter)
	s.answer(testKey, enter)
	s.await("The key goes to gateway.invalid over plain HTTP: everyone on the way can read it. Send it?")
	s.answer(down, enter)
	s.awaitNext("Address, such as localhost:8080/v1: ")
	s.answer(esc)
	s.ends(3, "raddle login openai")
}

// A person without a key and without a model can look at recorded agents: a graph, and a talk whose tools are real.
func TestLook(t *testing.T) {
	w := newWorkplace(t, "")
	nothing := []string{"OLLAMA_HOST=127.0.0.1:1", "SHELL=/bin/sh"}
	s := w.screen(nothing, "init")
	s.await("No key of a provider was found")
	s.answer(strings.Repeat(down, 9), enter)
	s.await("Their replies are recorded: no model is asked, nothing is sent.")
	s.answer(enter)
	s.await("How do you want to travel?")
	s.answer(down, enter)
	s.await("By ship: board in the evening")
	s.ends(0, "next: raddle init, which chooses a model")
	s = w.screen(nothing)
	s.await("No key of a provider was found")
	s.answer(strings.Repeat(down, 9), enter)
	s.await("Which one?")
	s.answer(down, enter)
	s.await("It knows one message")
	s.await("lists commands, @ attaches files")
	s.press("Write me a packing list.", enter)
	s.await("How do you travel?")
	s.answer(enter)
	s.await("packing wants to change packing-list.md")
	s.answer("1")
	s.await("These replies are recorded as well.")
	s.leave()
	s.ends(0, "")
	if got := w.read("packing-list.md"); !strings.Contains(got, "- raincoat") {
		t.Errorf("packing-list.md is\n%s", got)
	}
	if text := w.read(".config/raddle/config.yaml"); text != "" {
		t.Errorf("config.yaml is\n%s", text)
	}
}

// A terminal that prints lines only asks for the key without echo.
func TestChooseModelOnADumbTerminal(t *testing.T) {
	requireNoKeychain(t)
	p, w := newFakeProvider(t), newWorkplace(t, newcomer)
	s := w.screen([]string{"TERM=dumb", "OPENAI_API_BASE=" + p.URL, "OLLAMA_HOST=127.0.0.1:1"}, "run", "./one", "Who are you?")
	s.await("No key of a provider was found, and no model on this machine.")
	s.await("Number [1-9]: ")
	s.press("1\n")
	s.await("Key of openai (it is not shown): ")
	s.press("two words\n")
	s.await("this can be no key of openai: it has white space")
	s.awaitNext("Key of openai (it is not shown): ")
	s.press(testKey + "\n")
	s.await("Number [1-4]: ")
	s.press("1\n")
	s.ends(0, "I am gpt-5.4-mini.")
	if _, key := p.last(); key != testKey {
		t.Errorf("the key of the call is %q", key)
	}
	if text := s.seen.String(); strings.Contains(text, testKey) || strings.Contains(text, "two words") || strings.Contains(text, "\x1b") {
		t.Errorf("the terminal shows\n%q", text)
	}
}

// A person who chooses none, and a process without a person, get a command to paste.
func TestNoModelChosen(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, newcomer)
	env := append(p.environ(), "OPENAI_API_KEY="+testKey)
	s := w.screen(env, "run", "./one", "Who are you?")
	s.await("Which one shall raddle use?")
	s.answer(esc)
	s.ends(3, "next: raddle run ./one --model openai:gpt-5.4-mini …  (or once and for all: raddle config set model openai:gpt-5.4-mini)")
	if text := w.read(".config/raddle/config.yaml"); text != "" {
		t.Errorf("config.yaml is\n%s", text)
	}
	w.env = append(w.env, env...)
	if r := w.run("run", "./one", "Who are you?"); r.code != 3 || !strings.Contains(r.err, "\nnext: raddle run ./one --model openai:gpt-5.4-mini …  (or once and for all: raddle config set model openai:gpt-5.4-mini)\n") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
	if model, _ := p.last(); model != "" {
		t.Errorf("model %q was called", model)
	}
}

// A refused key is reported with its source, whatever the source.
func TestRefusedKeyNamesItsSource(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, newcomer)
	w.env = append(w.env, p.environ()...)
	cmd := w.command("login", "openai", "--file")
	cmd.Stdin = strings.NewReader("sk-wrong-wrong-wrong\n")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "next: raddle config set model openai:gpt-5.4-mini") {
		t.Fatalf("%v\n%s", err, out)
	}
	r := w.run("run", "./one", "Who are you?", "--model", "openai:gpt-5")
	if r.code != 4 || !strings.Contains(r.err, `The key of client "openai" (keys.json; to store another: raddle login openai) was refused.`) || strings.Contains(r.err, "wrong-wrong") {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
	w.env = append(w.env, "OPENAI_API_KEY=sk-also-wrong-also")
	r = w.run("run", "./one", "Who are you?", "--model", "openai:gpt-5")
	if r.code != 4 || !strings.Contains(r.err, `The key of client "openai" (OPENAI_API_KEY) was refused.`) {
		t.Errorf("code %d\n%s", r.code, r.err)
	}
}

// login asks for a key, and Esc stores none.
func TestLoginAsks(t *testing.T) {
	w := newWorkplace(t, "")
	s := w.screen(nil, "login", "--file", "claude")
	s.await("Key of anthropic (it is not shown): ")
	s.answer("\x1b[200~"+testKey+"\n\x1b[201~", enter) // a paste, as terminals mark it
	s.ends(0, "To remove it: raddle logout anthropic")
	if strings.Contains(s.seen.String(), testKey) || !strings.Contains(w.read(".config/raddle/keys.json"), testKey) {
		t.Errorf("%s\n%s", s.seen, w.read(".config/raddle/keys.json"))
	}
	s = w.screen(nil, "login", "--file", "openai")
	s.await("Key of openai")
	s.answer(esc)
	s.ends(130, "")
	if strings.Contains(w.read(".config/raddle/keys.json"), "openai") {
		t.Error("a key was stored")
	}
}

// OpenRouter offers to sign in with the browser; a key can be pasted as before, and Ctrl-C ends the wait.
func TestLoginOpenRouter(t *testing.T) {
	w := newWorkplace(t, "")
	s := w.screen([]string{"DISPLAY=", "WAYLAND_DISPLAY="}, "login", "--file", "openrouter")
	s.await("How do you sign in to OpenRouter?")
	s.answer(enter)
	s.await("https://openrouter.ai/auth?callback_url=http%3A%2F%2Flocalhost%3A")
	s.press(ctrlC)
	s.ends(130, "")
	s = w.screen(nil, "login", "--file", "openrouter")
	s.answer(down, enter)
	s.await("Key of openrouter (it is not shown): ")
	s.answer("sk-or-v1-0123456789abcdef", enter)
	s.ends(0, "To remove it: raddle logout openrouter")
	if !strings.Contains(w.read(".config/raddle/keys.json"), "sk-or-v1-0123456789abcdef") {
		t.Error("the key is not stored")
	}
}

// init asks for a model, tries it, creates an agent and sets completion up.
func TestInit(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, "")
	w.write(".home/.bashrc", "# mine")
	if err := os.Symlink(w.program, filepath.Join(w.dir, "raddle")); err != nil {
		t.Fatal(err)
	}
	env := append(p.environ(), "OPENAI_API_KEY="+testKey, "SHELL=/bin/bash", "PATH="+w.dir)
	s := w.screen(env, "init")
	s.await("Which model shall raddle use? (found: OPENAI_API_KEY)")
	s.answer(down, enter)
	s.await("openai:gpt-5.5 is saved as your model in .config/raddle/config.yaml")
	s.await("Send one short request to openai:gpt-5.5")
	s.answer(enter)
	s.await("openai:gpt-5.5 answered in ")
	s.await("Create a first agent")
	s.answer(enter)
	s.await("Name: ")
	s.answer("\x15my agent", enter)
	s.await(`"my agent" cannot be the name of an agent`)
	s.awaitNext("Name: ")
	s.answer("\x15mine", enter)
	s.await(".config/raddle/agents/mine/tools.sh")
	s.await("Set up completion with Tab? This adds to .home/.bashrc:")
	s.answer(enter)
	s.ends(0, "or: raddle run mine 'How long is the word \"shuttle\"?'")
	if got, want := w.read(".home/.bashrc"), "# mine\n\n# Completion of raddle's commands.\neval \"$(raddle completion bash)\"\n"; got != want {
		t.Errorf(".bashrc is\n%s", got)
	}
	if model, key := p.last(); model != "gpt-5.5" || key != testKey {
		t.Errorf("model %q was called with key %q", model, key)
	}

	// What there is already is kept, and not asked for again.
	s = w.screen(env, "init")
	s.await("Your model is openai:gpt-5.5. Keep it?")
	s.answer(enter)
	s.await("Send one short request to openai:gpt-5.5")
	s.answer(down, enter)
	s.ends(0, `or: raddle run mine "a prompt"`)
	if text := s.seen.String(); strings.Contains(text, "Create a first agent") || strings.Contains(text, "Set up completion") {
		t.Errorf("the terminal shows\n%s", text)
	}
}

// Esc skips a step and writes nothing; Ctrl-C ends the setup.
func TestInitSkips(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, "")
	s := w.screen(append(p.environ(), "SHELL=/bin/sh"), "init")
	s.await("Which model shall raddle use?")
	s.answer(esc)
	s.await("Create a first agent")
	s.answer(esc)
	s.ends(0, "next: raddle (a conversation), or: raddle help agents")
	s = w.screen(append(p.environ(), "SHELL=/bin/sh"), "init")
	s.await("Which model shall raddle use?")
	s.answer(ctrlC)
	s.ends(130, "")
	for _, name := range []string{".config/raddle/config.yaml", ".config/raddle/keys.json", ".config/raddle/agents/helper/config.yaml"} {
		if text := w.read(name); text != "" {
			t.Errorf("%s is\n%s", name, text)
		}
	}
}

// A refused key does not end the setup.
func TestInitWithARefusedKey(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, "")
	s := w.screen(append(p.environ(), "OPENAI_API_KEY=sk-wrong-wrong", "SHELL=/bin/sh"), "init")
	s.answer(enter)
	s.await("Send one short request")
	s.answer(enter)
	s.await(`The key of client "openai" (OPENAI_API_KEY) was refused.`)
	s.await("next: raddle doctor --online, or: raddle init")
	s.answer(esc)
	s.ends(0, "next: raddle (a conversation), or: raddle help agents")
}

func TestDoctorOnATerminal(t *testing.T) {
	p, w := newFakeProvider(t), newWorkplace(t, newcomer)
	env := append(p.environ(), "OPENAI_API_KEY="+testKey, "RADDLE_MODEL=openai:gpt-5-mini", "LANG=C.UTF-8")
	s := w.screen(env, "doctor", "./one")
	s.await("Send one short request to openai:gpt-5-mini to see whether it answers?")
	s.answer(enter)
	s.await("openai:gpt-5-mini answered in ")
	s.ends(0, "100×24")
	if text := s.seen.String(); !strings.Contains(text, "bracketed paste") || !strings.Contains(text, "UTF-8") {
		t.Errorf("the terminal shows\n%s", text)
	}
	s = w.screen(append(env, "TERM=dumb", "OPENAI_API_KEY=sk-wrong-wrong"), "doctor", "--online")
	s.ends(4, "only lines of text")
	if text := joinWords(s.seen.String()); !strings.Contains(text, `✗ reply`) || !strings.Contains(text, `The key of client "openai" (OPENAI_API_KEY) was refused.`) {
		t.Errorf("the terminal shows\n%s", text)
	}
}

// Tab completes in a bash without the package bash-completion, also words with a colon.
func TestCompletionInABareBash(t *testing.T) {
	testneed.RequirePrograms(t, "bash")
	w := newWorkplace(t, "")
	if err := os.Symlink(w.program, filepath.Join(w.dir, "raddle")); err != nil {
		t.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: bash, Args: []string{"bash", "--norc", "--noprofile", "-i"}, Dir: w.dir,
		Env: append(w.env, "PATH="+w.dir+":"+os.Getenv("PATH"), "PS1=$ ", "INPUTRC=/dev/null", "OPENAI_API_KEY="+testKey)}
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 24, Cols: 100})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, cmd: cmd, tty: tty, seen: newConsole()}
	go func() { _, _ = io.Copy(s.seen, tty) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = tty.Close() })
	s.press("eval \"$(raddle completion bash)\"; echo rea''dy\n")
	s.await("ready")
	s.press("raddle doc\t")
	s.await("raddle doctor ")
	s.press("--onl\t")
	s.await("--online ")
	s.press("\x15raddle config set model openai:gpt-5.4-m\t")
	s.await("openai:gpt-5.4-mini ")
	s.press("\x15raddle config set model 'openai:gpt-5.4-n\t\x15raddle info --output=j\t")
	s.await("--output=json ")
	s.press("\x15raddle che --strict\x01" + strings.Repeat("\x06", len("raddle che")) + "\t\n") // in the middle of a line
	s.await("raddle check: the agent is missing")
	s.press("\x15exit\n")
	_ = wait(t, cmd)
	if text := s.seen.String(); strings.Contains(text, "command not found") || strings.Contains(text, "bad substitution") {
		t.Errorf("bash says\n%s", text)
	}
}
