package toolbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/netproxy"
	"raddle.dev/internal/testkit/testfile"
	"raddle.dev/tool/permission"
)

// What the box hides: keys, passwords and tokens of the user, raddle's own files, variables of the workspace, and what
// rules deny. Everything else can be read.
func TestWhatTheBoxHides(t *testing.T) {
	s := newTestShared(t)
	home := s.Dirs.Home
	files := map[string]bool{ // true: it is hidden
		filepath.Join(home, ".ssh", "id_ed25519"):      true,
		filepath.Join(home, ".aws", "credentials"):     true,
		filepath.Join(home, ".netrc"):                  true,
		filepath.Join(home, ".bash_history"):           true,
		filepath.Join(home, ".bashrc"):                 false,
		filepath.Join(home, ".gitconfig"):              false,
		filepath.Join(home, ".vim", "vimrc"):           false,
		filepath.Join(home, "notes.txt"):               false,
		filepath.Join(s.Dirs.Config, "config.yaml"):    true,
		filepath.Join(s.Dirs.Config, "agents", "a"):    false,
		filepath.Join(s.Dirs.State, "runs.db"):         true,
		filepath.Join(s.Dirs.State, "keys", "k"):       true,
		filepath.Join(s.Dirs.State, boxesDir, "b"):     false,
		filepath.Join(s.Dirs.Work, "main.go"):          false,
		filepath.Join(s.Dirs.Work, ".env"):             true,
		filepath.Join(s.Dirs.Work, "sub", ".env.prod"): true,
		filepath.Join(s.Dirs.Work, ".env.example"):     false,
		filepath.Join(s.Dirs.Work, ".environment"):     false,
		filepath.Join(s.Dirs.Work, "private", "a"):     true,
		filepath.Join(s.Dirs.Work, "privately", "a"):   false,
	}
	for path := range files {
		testfile.WriteFile(t, path, "x")
	}
	testfile.WriteFile(t, filepath.Join(s.Dirs.Config, "permissions.yaml"), "deny: [any read(private/**)]\n")
	_, tb := newTestGate(t, s)
	for path, want := range files {
		if got := tb.hidesInBox(path); got != want {
			t.Errorf("%s is hidden: %t", path, got)
		}
	}
	link := filepath.Join(home, ".kube")
	if err := os.Symlink(filepath.Join(home, "clusters"), link); err != nil {
		t.Fatal(err)
	}
	testfile.WriteFile(t, filepath.Join(home, "clusters", "config"), "x")
	if !tb.hidesInBox(filepath.Join(home, "clusters", "config")) {
		t.Error("what a secret place leads to can be read")
	}
}

func TestSettingsOfGitThatHoldNoSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), ".gitconfig")
	if isPlainSettings(path) {
		t.Error("a file that cannot be read holds no secret")
	}
	for text, want := range map[string]bool{
		"":                                                   true,
		"[user]\n\temail = a@example.com":                    true,
		"[url \"https://example.com/\"]":                     true,
		"[url \"https://me:x@example.com/\"]":                false,
		"[http]\n\textraHeader = X: y":                       false,
		"[http]\n\tproxyAuthorization = x":                   false,
		"[github]\n\tTOKEN = x":                              false,
		"[sendemail]\n\tsmtpPassword = x":                    false,
		"[credential]\n\thelper = store\n[x]\n\tsecret = yy": false,
	} {
		testfile.WriteFile(t, path, text)
		if got := isPlainSettings(path); got != want {
			t.Errorf("%q: %t", text, got)
		}
	}
}

// The box has layers over caches that exist, each once, and none over the workspace.
func TestLayersOfTheBox(t *testing.T) {
	s := newTestShared(t)
	home := s.Dirs.Home
	for _, dir := range []string{".cache/go-build", ".npm", ".m2", "elsewhere"} {
		if err := os.MkdirAll(filepath.Join(home, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s.env = environ.Environ{
		"GOCACHE=" + filepath.Join(home, ".cache", "go-build"),
		"CARGO_HOME=" + filepath.Join(home, "elsewhere"),
		"UV_CACHE_DIR=" + s.Dirs.Work,
		"PIP_CACHE_DIR=relative",
		"XDG_CACHE_HOME=" + filepath.Join(home, "missing"),
	}
	tb := s.NewToolbox(s.Dirs.Work, "")
	var ours []string
	for _, dir := range tb.boxLayers() {
		if isWithin(home, dir) {
			ours = append(ours, strings.TrimPrefix(dir, home))
		}
	}
	if isWithin("/tmp", home) { // then one layer holds all of them
		if !slices.Contains(tb.boxLayers(), "/tmp") || ours != nil {
			t.Errorf("%q beside /tmp", ours)
		}
		return
	}
	if want := []string{"/.m2", "/.npm", "/.cache", "/elsewhere"}; !slices.Equal(ours, want) {
		t.Errorf("%q, want %q", ours, want)
	}
}

func TestIsWithin(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		want      bool
	}{
		{"/a", "/a", true},
		{"/a", "/a/b", true},
		{"/a", "/a/..b", true},
		{"/a", "/ab", false},
		{"/a", "/", false},
		{"/a/b", "/a", false},
		{"", "/a", false},
		{"/", "/a", true},
	} {
		if got := isWithin(c.dir, c.path); got != c.want {
			t.Errorf("%q, %q: %t", c.dir, c.path, got)
		}
	}
}

// The network of the box: rules decide first, then what the command was allowed. Nothing overrules a rule that denies.
func TestHostsOfTheBox(t *testing.T) {
	rules := permission.Rules{}
	for text, list := range map[string]*[]permission.Rule{
		"any host(allowed.example)":      &rules.Allow,
		"any host(allowed.example:8443)": &rules.Allow,
		"any host(denied.example)":       &rules.Deny,
	} {
		r, err := permission.ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		*list = append(*list, r)
	}
	n := &boxNetwork{
		policy: permission.Policy{Workspace: t.TempDir(), Rules: []permission.Rules{rules}},
		tool:   "execute_command",
	}
	hosts := []string{"asked.example", "port.example:8443", "[::1]:8080", "127.0.0.1", "denied.example"}
	for _, c := range []struct {
		to             netproxy.Destination
		allowed, named bool
	}{
		{netproxy.Destination{Host: "allowed.example", Port: 443}, true, true},
		{netproxy.Destination{Host: "asked.example", Port: 443}, true, false},
		{netproxy.Destination{Host: "asked.example", Port: 80}, true, false},
		{netproxy.Destination{Host: "asked.example", Port: 8443}, false, false},
		{netproxy.Destination{Host: "port.example", Port: 8443}, true, true},
		{netproxy.Destination{Host: "port.example", Port: 443}, false, false},
		{netproxy.Destination{Host: "denied.example", Port: 443}, false, false},
		{netproxy.Destination{Host: "other.example", Port: 443}, false, false},
		{netproxy.Destination{Host: "127.0.0.1", Port: 80, Private: "this machine"}, true, true},
		{netproxy.Destination{Host: "::1", Port: 8080, Private: "this machine"}, true, true},
	} {
		r := n.judgeHost(c.to, hosts)
		if r.Allowed != c.allowed || r.Allowed && r.Named != c.named {
			t.Errorf("%v: %+v", c.to, r)
		}
		if !r.Allowed && !strings.Contains(r.Reason, c.to.Host) {
			t.Errorf("%v: it is refused because of %q", c.to, r.Reason)
		}
	}
}

// The hosts that a command was refused are kept until someone takes them, each once, and not too many.
func TestRefusedHosts(t *testing.T) {
	n := &boxNetwork{}
	for _, a := range []netproxy.Attempt{
		{Host: "b.example", Port: 443},
		{Host: "a.example", Port: 8443},
		{Host: "b.example", Port: 80},
		{Host: "not valid"},
		{Host: "c.example", Port: 443, Allowed: true},
	} {
		n.noteAttempt(a)
	}
	if got, want := n.TakeRefused(), []string{"b.example", "a.example:8443", "not valid"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	for i := range 2 * maxRefused {
		n.noteAttempt(netproxy.Attempt{Host: strings.Repeat("x", i+1), Port: 443})
	}
	if got := n.TakeRefused(); len(got) != maxRefused {
		t.Errorf("%d hosts are kept", len(got))
	}
	if got := n.TakeRefused(); got != nil {
		t.Errorf("%q were taken before", got)
	}
}
