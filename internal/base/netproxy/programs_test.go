package netproxy

import (
	"encoding/pem"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/testkit/testneed"
)

// A programRun runs real programs with the variables of a proxy.
type programRun struct {
	*running
	env []string
	dir string
}

// startPrograms starts a proxy with a secret, and servers whose hosts are not those that programs reach without a proxy.
func startPrograms(t *testing.T) (run *programRun, plain, secure *httptest.Server) {
	t.Helper()
	git, _ := exec.LookPath("git")
	dir := t.TempDir()
	handler := http.NewServeMux()
	handler.HandleFunc("/", echoHost)
	handler.Handle("/git/", &cgi.Handler{Path: git, Args: []string{"http-backend"}, Root: "/git", Env: []string{"GIT_PROJECT_ROOT=" + dir, "GIT_HTTP_EXPORT_ALL=1"}})
	plain, secure = httptest.NewServer(handler), startTLS(t, handler)
	t.Cleanup(plain.Close)
	at := map[string]string{"80": plain.Listener.Addr().String(), "443": secure.Listener.Addr().String()}
	p := proxyTo(at)
	p.Secret = "a-b_c"
	run = &programRun{running: startProxy(t, p), dir: dir}
	authority := filepath.Join(dir, "ca.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	run.env = append(ListVariables(run.address, p.Secret), "PATH="+os.Getenv("PATH"), "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"CURL_CA_BUNDLE="+authority, "GIT_SSL_CAINFO="+authority, "SSL_CERT_FILE="+authority, "NODE_EXTRA_CA_CERTS="+authority)
	return run, plain, secure
}

// run runs a program, and returns all that it writes.
func (p *programRun) run(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env, c.Dir = p.env, p.dir
	out, err := c.CombinedOutput()
	return string(out), err
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "curl", "git", "python3")
	run, _, _ := startPrograms(t)
	origin := filepath.Join(run.dir, "repo")
	for _, args := range [][]string{
		{"init", "-q", origin},
		{"-C", origin, "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "--allow-empty", "-m", "first"},
	} {
		if out, err := run.run(t, "git", args...); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	python := "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())"
	socks := "socks5h://raddle:a-b_c@" + run.address
	for _, c := range []struct {
		command []string
		ok      bool
		want    string
	}{
		{[]string{"curl", "-sS", "http://example.com/a"}, true, "/a of example.com"},
		{[]string{"curl", "-sS", "https://example.com/a"}, true, "/a of example.com"},
		{[]string{"curl", "-sS", "-x", socks, "https://EXAMPLE.com./a"}, true, "/a of EXAMPLE.com"},
		{[]string{"curl", "-sS", "--proxy-anyauth", "https://example.com/a"}, true, "/a of example.com"},
		{[]string{"curl", "-sSv", "http://bad.example/"}, true, "the sandbox of raddle does not let this program connect to bad.example:80: no rule and no answer allows it; the rule any host(bad.example) does"},
		{[]string{"curl", "-sSv", "https://bad.example/"}, false, "the sandbox of raddle does not let this program connect to bad.example:443: no rule and no answer allows it"},
		{[]string{"curl", "-sS", "-x", socks, "https://bad.example/"}, false, "(2)"},
		{[]string{"curl", "-sS", "--connect-to", "bad.example:443:example.com:443", "https://bad.example/"}, false, "access denied"},
		{[]string{"git", "clone", "-q", "https://example.com/git/repo", "a"}, true, ""},
		{[]string{"git", "clone", "-q", "http://example.com/git/repo", "b"}, true, ""},
		{[]string{"git", "clone", "-q", "https://bad.example/git/repo", "c"}, false, "403"},
		{[]string{"python3", "-c", python, "https://example.com/p"}, true, "/p of example.com"},
		{[]string{"python3", "-c", python, "http://example.com/p"}, true, "/p of example.com"},
		{[]string{"python3", "-c", python, "https://bad.example/p"}, false, "Tunnel connection failed: 403 the sandbox of raddle does not let this program connect to bad.example:443: no rule"},
	} {
		out, err := run.run(t, c.command[0], c.command[1:]...)
		if c.ok != (err == nil) || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v: %s", c.command, err, out)
		}
	}
	for _, dir := range []string{"a", "b"} {
		if out, err := run.run(t, "git", "-C", dir, "log", "--format=%s"); out != "first\n" {
			t.Errorf("the clone %s has %q, %v", dir, out, err)
		}
	}
}

// TestLoopbackNeedsNoProxy reaches a server of the box itself.
func TestLoopbackNeedsNoProxy(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "curl", "python3")
	run, plain, _ := startPrograms(t)
	for _, command := range [][]string{
		{"curl", "-sS", plain.URL},
		{"python3", "-c", "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())", plain.URL},
	} {
		if out, err := run.run(t, command[0], command[1:]...); err != nil || !strings.Contains(out, "/ of 127.0.0.1") {
			t.Errorf("%q: %v: %s", command, err, out)
		}
	}
	if len(run.log) != 0 {
		t.Errorf("the proxy was used: %+v", <-run.log)
	}
}

func TestOptionalNode(t *testing.T) {
	t.Parallel()
	testneed.RequirePrograms(t, "node")
	run, _, _ := startPrograms(t)
	if out, err := run.run(t, "node", "-e", "process.exit(process.allowedNodeEnvironmentFlags.has('--use-env-proxy') ? 0 : 1)"); err != nil {
		t.Skipf("this version of node uses no proxy: %s", out)
	}
	script := "fetch(process.argv[1]).then(async r => console.log(await r.text()), e => console.log(e.cause ?? e))"
	for address, want := range map[string]string{"https://example.com/n": "/n of example.com", "http://example.com/n": "/n of example.com", "https://bad.example/": "403"} {
		if out, err := run.run(t, "node", "-e", script, address); err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v: %s", address, err, out)
		}
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	got := ListVariables("127.0.0.1:3128", "")
	for _, want := range []string{"HTTPS_PROXY=http://127.0.0.1:3128", "http_proxy=http://127.0.0.1:3128", "NO_PROXY=localhost,127.0.0.1,::1", "RSYNC_PROXY=127.0.0.1:3128",
		"JAVA_TOOL_OPTIONS=-Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3128 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3128"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is missing in %q", want, got)
		}
	}
	names := map[string]bool{}
	for _, pair := range ListVariables("127.0.0.1:3128", "s") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || value == "" || names[name] {
			t.Errorf("%q", pair)
		}
		names[name] = true
	}
}
