package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"raddle.dev/internal/testkit/testneed"
)

const twoModels = `
-- two/graph.yaml --
name: two
start: a
nodes:
  a: {type: llm, model: "script:one.yaml", prompt: One?, state_updates: {a: "{{output}}"}, next: b}
  b: {type: llm, model: "script:two.yaml", prompt: Two?, state_updates: {b: "{{output}}"}, next: none}
  none: {type: agent, agent: none, prompt: x, next: e}
  e: {type: end, output: "{{a}} {{b}}"}
-- two/one.yaml --
- {text: one}
-- two/two.yaml --
- {text: two}
-- none/graph.yaml --
name: none
start: e
nodes:
  e: {type: end, output: nothing}
-- .config/raddle/config.yaml --
model: openai:never-called
`

// "runs show" names the models that have answered: never the one that would otherwise have
// been called, and none if none was called.
func TestRunsShowNamesTheModelsThatAnswered(t *testing.T) {
	w := newWorkplace(t, twoModels)
	for agent, want := range map[string][]string{"./two": {"script:one.yaml", "script:two.yaml"}, "./none": {}} {
		if r := w.run("run", "-q", agent); r.code != 0 {
			t.Fatal(r)
		}
		run := w.runs()[0].Run
		text := w.run("runs", "show", run).out
		line := ""
		for l := range strings.Lines(text) {
			if strings.HasPrefix(l, "model ") {
				line = strings.TrimSpace(strings.TrimPrefix(l, "model"))
			}
		}
		if line != strings.Join(want, ", ") || strings.Contains(text, "price") || strings.Contains(text, "never-called") {
			t.Errorf("%s: model %q\n%s", agent, line, text)
		}
		var shown struct {
			Usage struct {
				Models   []string
				Unpriced int `json:"unpriced_calls"`
			}
		}
		if err := json.Unmarshal([]byte(w.run("runs", "show", run, "--output", "json").out), &shown); err != nil ||
			strings.Join(shown.Usage.Models, " ") != strings.Join(want, " ") || shown.Usage.Models == nil || shown.Usage.Unpriced != 0 {
			t.Errorf("%s: %+v, %v", agent, shown, err)
		}
	}
}

const ends = `
-- ends/graph.yaml --
name: ends
start: e
initial_state: {n: 3}
nodes:
  e: {type: end, output: "n is {{n}}", exit_code: 70}
`

// Resuming a run that is over prints its result once more, in every format.
func TestResumeOfARunThatIsOverHasTheResult(t *testing.T) {
	w := newWorkplace(t, ends)
	first := w.run("run", "-q", "./ends", "--output", "json")
	var want, got map[string]any
	if err := json.Unmarshal([]byte(first.out), &want); err != nil || first.code != 70 {
		t.Fatal(first, err)
	}
	run := want["run"].(string)
	again := w.run("resume", "-q", run, "--output", "json")
	if err := json.Unmarshal([]byte(again.out), &got); err != nil || again.code != 8 || !strings.Contains(again.err, "run "+run+" is over (done)") {
		t.Fatal(again, err)
	}
	if got["output"] != "n is 3" || strings.Count(again.out, "\n") != 1 {
		t.Errorf("%s", again.out)
	}
	if first.out != again.out {
		t.Errorf("%s\nis not what the run gave:\n%s", again.out, first.out)
	}
	stream := w.run("resume", "-q", run, "--output", "stream-json")
	var line struct {
		Kind, Run string
		Data      map[string]any
	}
	if err := json.Unmarshal([]byte(stream.out), &line); err != nil || stream.code != 8 || line.Kind != "result" || line.Run != run || line.Data["output"] != "n is 3" {
		t.Errorf("%+v, %v", stream, err)
	}
	if r := w.run("resume", "-q", run); r.code != 8 || r.out != "n is 3\n" {
		t.Errorf("%+v", r)
	}
}

// A refused key is named by its client and the place where it was found.
func TestRefusedKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error":{"message":"wrong key."}}`)
	}))
	t.Cleanup(server.Close)
	const client = "# what I use\nclients:\n  - name: fake\n    type: %s\n    api_base: %s/v1\n%s    models: [small]\n"
	for _, k := range []struct {
		name, wire, key string
		env             string
		want            string
	}{
		{"of the file", "openai-compatible", "    api_key: sk-refused-0001\n", "", `wrong key. The key of client "fake" (config.yaml:6) was refused.`},
		{"of a variable that the file names", "openai-compatible", "    api_key: ${MINE}\n", "MINE=sk-refused-0002", `The key of client "fake" (MINE, named in config.yaml:6) was refused.`},
		{"of a variable", "openai-compatible", "", "FAKE_API_KEY=sk-refused-0003", `The key of client "fake" (FAKE_API_KEY) was refused.`},
		{"of Anthropic's wire", "anthropic", "    api_key: sk-refused-0004\n", "", `The key of client "fake" (config.yaml:6) was refused.`},
		{"of Google's wire", "gemini", "    api_key: sk-refused-0005\n", "", `The key of client "fake" (config.yaml:6) was refused.`},
		{"that is missing", "openai-compatible", "", "", "no API key was sent: set FAKE_API_KEY"},
	} {
		t.Run(k.name, func(t *testing.T) {
			w := newWorkplace(t, "-- a/config.yaml --\nname: a\nmodel: fake:small\n")
			w.write(".config/raddle/config.yaml", fmt.Sprintf(client, k.wire, server.URL, k.key))
			cmd, c := w.command("run", "./a", "hi"), newConsole()
			cmd.Stderr = c
			if k.env != "" {
				cmd.Env = append(cmd.Env, k.env)
			}
			_ = cmd.Run()
			if cmd.ProcessState.ExitCode() != 4 || !strings.Contains(c.String(), k.want) || strings.Contains(c.String(), "to a key that is valid") || strings.Contains(c.String(), "sk-refused") {
				t.Errorf("exit code %d, want %q\n%s", cmd.ProcessState.ExitCode(), k.want, c)
			}
		})
	}
}

// The arguments of a tool that is called by hand come from standard input if they
// are "-": a command line has no room for a long text.
func TestToolsCallReadsStandardInput(t *testing.T) {
	w := newWorkplace(t, "")
	long := strings.Repeat("a line\n", 40_000)
	args, err := json.Marshal(map[string]string{"path": "made", "contents": long})
	if err != nil {
		t.Fatal(err)
	}
	cmd := w.command("tools", "call", "fs_write", "-")
	cmd.Stdin = strings.NewReader(string(args))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(filepath.Join(w.dir, "made")); err != nil || string(text) != long {
		t.Errorf("%d bytes were written, %v", len(text), err)
	}
	cmd = w.command("tools", "call", "fs_write", "-")
	cmd.Stdin = strings.NewReader("no json")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(out), "the arguments must be a JSON object") {
		t.Errorf("exit code %d: %s", cmd.ProcessState.ExitCode(), out)
	}
}

// TestSeeds runs the archives of testdata/seeds: one for each example of the documents that the file formats come from. The
// examples stand there as they were written, with as much around them as they name.
func TestSeeds(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "curl", "python3")
	params := scriptParams("testdata/seeds", programDir(t))
	web := newWeb(t)
	setup := params.Setup
	params.Setup = func(e *testscript.Env) error {
		for name, value := range web.surroundings {
			e.Setenv(name, value)
		}
		return setup(e)
	}
	testscript.Run(t, params)
}

// A web is what the processes of a test take for the world: a proxy that leads every secure address to one server of the test, and
// a file with the certificate that it shows.
type web struct {
	surroundings map[string]string
}

// pages is what the web of a test has.
var pages = map[string]string{
	"example.com/reference": "The reference says that code 2160-0 is creatinine.",
	"example.com/spec":      "The specification says that a knot holds.",

	"www.ohdsi.org/data-standardization/": "Standardised data has one vocabulary.",

	"github.com/OHDSI/Vocabulary-v5.0/wiki/": "The wiki says how concepts are mapped.",

	"httpbin.org/ip":           `{"origin": "192.0.2.7"}`,
	"checkip.amazonaws.com/":   "192.0.2.7",
	"api.openai.com/v1/models": `{"data": []}`,
}

func newWeb(t *testing.T) *web {
	t.Helper()
	certificate, authority := newCertificate(t)
	embedding := newEmbeddings(t)
	site := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Host == "api.openai.com" && r.URL.Path == "/v1/embeddings" {
			embedding.Config.Handler.ServeHTTP(w, r)
			return
		}
		page, ok := pages[r.Host+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, page)
	}))
	site.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	site.StartTLS()
	t.Cleanup(site.Close)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			http.Error(w, "only secure addresses", http.StatusForbidden)
			return
		}
		joinConnection(t, w, site.Listener.Addr().String())
	}))
	t.Cleanup(proxy.Close)
	return &web{map[string]string{
		"HTTPS_PROXY": proxy.URL, "HTTP_PROXY": proxy.URL, "NO_PROXY": "127.0.0.1,localhost",
		"SSL_CERT_FILE": authority, "CURL_CA_BUNDLE": authority,
	}}
}

// joinConnection takes the connection of a CONNECT request and copies what comes to the server at an address, and back.
func joinConnection(t *testing.T, w http.ResponseWriter, address string) {
	server, err := net.Dial("tcp", address)
	if err != nil {
		t.Error(err)
		return
	}
	defer server.Close()
	client, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return // the client is gone
	}
	over := make(chan struct{}, 2)
	for _, c := range [][2]net.Conn{{client, server}, {server, client}} {
		go func() {
			_, _ = io.Copy(c[0], c[1]) // ends when either side does
			over <- struct{}{}
		}()
	}
	<-over
}

// newCertificate returns a certificate for every host of pages that vouches for itself, and the file that holds it.
func newCertificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	hosts := []string{"api.openai.com"}
	for page := range pages {
		host, _, _ := strings.Cut(page, "/")
		hosts = append(hosts, host)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, DNSNames: hosts, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "certificate.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, file
}
