package setup

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/base/release"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/provider"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/testkit/testfile"
)

func TestCompletionOfShells(t *testing.T) {
	for _, tt := range []struct{ shell, more, file string }{
		{"/bin/bash", "", "/h/.bashrc"}, {"bash", "", "/h/.bashrc"}, {"/usr/bin/zsh", "", "/h/.zshrc"},
		{"/usr/bin/zsh", "ZDOTDIR", "/more/.zshrc"},
		{"/usr/bin/fish", "", "/h/.config/fish/completions/raddle.fish"},
		{"/usr/bin/fish", "XDG_CONFIG_HOME", "/more/fish/completions/raddle.fish"},
		{"/bin/sh", "", ""}, {"", "", ""},
	} {
		getenv := func(name string) string { return map[string]string{"SHELL": tt.shell, tt.more: "/more"}[name] }
		got, ok := findCompletionSetup(getenv, "/h")
		if got.file != filepath.FromSlash(tt.file) || ok != (tt.file != "") || ok &&
			!strings.Contains(got.text, "raddle completion "+filepath.Base(tt.shell)) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// Completion is added behind what the file has, once, and only after a yes.
func TestAskCompletion(t *testing.T) {
	const added = "# Completion of raddle's commands.\neval \"$(raddle completion bash)\"\n"
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "raddle"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SHELL", "/bin/bash")
	for _, tt := range []struct{ old, answer, want string }{
		{"", "yes", added}, {"a\n", "yes", "a\n\n" + added}, {"a", "yes", "a\n\n" + added}, {"a\n", "no", "a\n"},
		{"source <(raddle completion bash)\n", "", "source <(raddle completion bash)\n"},
	} {
		t.Setenv("PATH", bin)
		g, who, _ := newGuide(t, tt.answer)
		file := filepath.Join(g.Process.Dirs.Home, ".bashrc")
		if tt.old != "" {
			testfile.WriteFile(t, file, tt.old)
		}
		if _, err := g.askCompletion(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if string(text) != tt.want || err != nil || (len(who.asked) == 0) != (tt.answer == "") {
			t.Errorf("%q and %s: %q, %v, asked %q", tt.old, tt.answer, text, err, who.asked)
		}
	}
	t.Setenv("PATH", t.TempDir())
	g, who, screen := newGuide(t)
	if _, err := g.askCompletion(t.Context()); err != nil || len(who.asked) > 0 ||
		!strings.Contains(screen(), "raddle is not on your PATH") {
		t.Errorf("without raddle on the path: %v, %q, %s", err, who.asked, screen())
	}
}

// Nothing is sent without a yes.
func TestAskToSend(t *testing.T) {
	for answer, want := range map[string]string{"yes": "", "no": "nothing was sent", "": "nothing was sent"} {
		g, who, _ := newGuide(t, answer)
		if answer == "" {
			who.answers = nil
		}
		err := g.AskToSend(t.Context(), "To a:\n", false)
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && got != want {
			t.Errorf("%q: %v", answer, err)
		}
		if len(who.asked) != 1 || !strings.Contains(who.asked[0], "To a:\nSend it?") {
			t.Errorf("the question is %q", who.asked)
		}
	}
	g, who, screen := newGuide(t)
	if err := g.AskToSend(t.Context(), "To a:\n", true); err != nil || len(who.asked) > 0 || screen() != "To a:\n" {
		t.Errorf("agreed: %v, %q, %q", err, who.asked, screen())
	}
	g.Prompter = nil
	if err := g.AskToSend(t.Context(), "To a:\n", false); err == nil ||
		!strings.HasSuffix(err.Error(), "no terminal to ask at:\nTo a:") {
		t.Errorf("without a terminal: %v", err)
	}
}

// A name that an agent cannot have is asked for again, and Enter alone takes the one that is proposed.
func TestAskAgent(t *testing.T) {
	g, who, screen := newGuide(t, "yes", "a: b", "", "yes")
	next, err := g.askAgent(t.Context())
	if err != nil || next != `raddle run helper 'How long is the word "shuttle"?'` || len(who.asked) != 3 ||
		!strings.Contains(screen(), "✓") {
		t.Errorf("%s, %v, asked %q\n%s", next, err, who.asked, screen())
	}
	if next, err := g.askAgent(t.Context()); err != nil || next != `raddle run helper "a prompt"` ||
		len(who.answers) != 1 {
		t.Errorf("with an agent: %s, %v, asked %q", next, err, who.asked)
	}
	g, _, _ = newGuide(t, "yes")
	if _, err := g.askAgent(t.Context()); !errors.Is(err, term.ErrLeftOpen) {
		t.Errorf("left at the name: %v", err)
	}
}

// Whether conversations may look for newer releases is asked once, and only by the program of a release.
func TestAskNotice(t *testing.T) {
	g, who, _ := newGuide(t)
	if _, err := g.askNotice(t.Context()); err != nil || len(who.asked) != 0 {
		t.Errorf("a program without releases asked %q, %v", who.asked, err)
	}
	old := []string{release.Version, release.Address, release.Key}
	t.Cleanup(func() { release.Version, release.Address, release.Key = old[0], old[1], old[2] })
	release.Version, release.Address, release.Key = "v1.2.0", "https://example.com/releases .example.net", "key"
	for answer, want := range map[string]string{"yes": "update_notice: true", "no": "update_notice: false"} {
		g, who, _ := newGuide(t, answer)
		if _, err := g.askNotice(t.Context()); err != nil || len(who.asked) != 1 || !strings.Contains(who.asked[0], "https://example.com/releases, at most once a day") {
			t.Errorf("asked %q, %v", who.asked, err)
		}
		text, err := os.ReadFile(filepath.Join(g.Process.Dirs.Config, config.FileName))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%q, %v", text, err)
		}
		if g.Process, err = g.Reopen(); err != nil {
			t.Fatal(err)
		}
		if _, err := g.askNotice(t.Context()); err != nil || len(who.asked) != 1 {
			t.Errorf("asked again: %q, %v", who.asked, err)
		}
	}
	g, _, _ = newGuide(t)
	if _, err := g.askNotice(t.Context()); !errors.Is(err, term.ErrLeftOpen) {
		t.Errorf("left open: %v", err)
	}
	if _, err := os.Stat(filepath.Join(g.Process.Dirs.Config, config.FileName)); err == nil {
		t.Error("something was written without an answer")
	}
}

func TestLabels(t *testing.T) {
	one, two := 1.25, 10.0
	models := []provider.Model{
		{ID: "a:long-name", Window: 1_047_576, Input: &one, Output: &two}, {ID: "b:x", Window: 8192},
		{ID: "c:y", Input: &one},
	}
	want := []string{
		"a:long-name  1.05M context    $1.25 / $10.00 per million tokens",
		"b:x          8k context       price unknown",
		"c:y          context unknown  price unknown",
		"ollama:z     local, running",
	}
	if diff := cmp.Diff(want, modelLabels(models, []provider.Model{{ID: "ollama:z"}})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{
		"Käse …  what", "ab      x",
	}, wayLabels([]way{{name: "Käse …", what: "what"}, {name: "ab", what: "x"}})); diff != "" {
		t.Error(diff)
	}
	for n, want := range map[int]string{
		999: "0k", 1000: "1k", 999_999: "999k", 1_000_000: "1M", 1_500_000: "1.5M", 10_000_000: "10M",
	} {
		if got := shortCount(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
}

// What cannot be a key is refused with the reason, and never shown.
func TestKeys(t *testing.T) {
	g, who, screen := newGuide(t, "", "export OPENAI_API_KEY=sk-secret", " sk-proj-0123456789abcdef0123456789abcdef\n")
	key, err := g.AskKey(t.Context(), "openai")
	if err != nil || key != "sk-proj-0123456789abcdef0123456789abcdef" || len(who.asked) != 3 {
		t.Errorf("%s, %v, asked %q", key, err, who.asked)
	}
	if text := screen(); !strings.Contains(text, "the key is empty") ||
		!strings.Contains(text, "this can be no key of openai") || strings.Contains(text, "sk-") {
		t.Errorf("the screen has %s", text)
	}
	if err := g.StoreKey("openai", key, true); err != nil ||
		!strings.Contains(screen(), "To remove it: raddle logout openai") || strings.Contains(screen(), key) {
		t.Errorf("%v: %s", err, screen())
	}
	if info, _ := g.Process.Models.FindKey("openai"); !info.Ready {
		t.Error("the process does not use the key that it has stored")
	}
	for name, want := range map[string]string{"openai": "", "opnai": `there is no provider "opnai"`} {
		client, err := FindKeyClient(g.Process.Models, name)
		if want == "" && (client != name || err != nil) || want != "" && (err == nil ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %s, %v", name, client, err)
		}
	}
}

// A server at an address is asked for its models with the key that the person has agreed to send, and becomes a client.
func TestPickAddress(t *testing.T) {
	const key = "key-0123456789abcdef"
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/v1/models":
			w.WriteHeader(http.StatusNotFound)
		case r.Header.Get("Authorization") != "Bearer "+key:
			w.WriteHeader(http.StatusUnauthorized)
		default:
			_, _ = w.Write([]byte(`{"object":"list","data":[{"id":"small","object":"model"},{"id":"large","object":"model"}]}`))
		}
	}))
	defer server.Close()
	g, who, screen := newGuide(t, "::bad::", server.URL+"/v1", "", key, "large")
	model, err := g.pickAddress(t.Context())
	if err != nil || !strings.HasSuffix(model, ":large") || len(who.answers) > 0 {
		t.Fatalf("%s, %v, asked %q\n%s", model, err, who.asked, screen())
	}
	client, _, _ := strings.Cut(model, ":")
	text, err := os.ReadFile(filepath.Join(g.Process.Dirs.Config, config.FileName))
	if err != nil || !strings.Contains(string(text), server.URL) || strings.Contains(string(text), key) ||
		!strings.Contains(string(text), client) {
		t.Errorf("%v: %s", err, text)
	}
	if info, known := g.Process.Models.FindKey(client); !known || !info.Ready || strings.Contains(screen(), key) {
		t.Errorf("the client is %+v\n%s", info, screen())
	}
	if err := g.SaveModel(model); err != nil || g.Process.Config.Model != model {
		t.Error(err)
	}
	if got, steps := g.ListSteps(); got != model || strings.Contains(steps, "login") ||
		strings.Contains(steps, "config set") {
		t.Errorf("%s: %s", got, steps)
	}
}

func TestStepsOfAnEmptyHome(t *testing.T) {
	g, _, _ := newGuide(t)
	model, steps := g.ListSteps()
	if list := strings.Split(steps, "\nthen: "); model != "" || len(list) != 4 ||
		!strings.HasPrefix(list[0], "raddle login ") || !strings.HasPrefix(list[1], "raddle config set model ") {
		t.Errorf("%q: %s", model, steps)
	}
}
