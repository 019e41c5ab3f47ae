// Package releasetest is a server of releases for tests. It refuses what the server of a real release never gets from
// raddle and its installers, and can be made to fail in the ways in which downloads fail.
package releasetest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"raddle.dev/internal/base/release"
)

// A Server has releases.
type Server struct {
	Address string // as release.Address
	Key     string // as release.Key

	private  *ecdsa.PrivateKey
	mu       sync.Mutex
	files    map[string][]byte // by path
	asked    []string
	instead  func(w http.ResponseWriter, path string, content []byte) bool // see AnswerInstead
	oneAgent string                                                        // see ExpectAgent
}

// Start starts a server without releases, which ends with the test.
func Start(t *testing.T) *Server {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Key: base64.StdEncoding.EncodeToString(der), private: private, files: map[string][]byte{}}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answer(t, w, r) }))
	t.Cleanup(web.Close)
	s.Address = web.URL + "/owner/raddle/releases"
	return s
}

func (s *Server) answer(t *testing.T, w http.ResponseWriter, r *http.Request) {
	path, isOurs := strings.CutPrefix(r.URL.Path, "/owner/raddle/releases/")
	if r.Method != http.MethodGet || r.URL.RawQuery != "" || r.ContentLength > 0 || r.Header.Get("Cookie") != "" || r.Header.Get("Authorization") != "" || !isOurs {
		t.Errorf("%s %s %v is no request for a release", r.Method, r.URL, r.Header)
	}
	s.mu.Lock()
	s.asked = append(s.asked, path)
	content, ok := s.files[path]
	instead := s.instead
	one := s.oneAgent
	s.mu.Unlock()
	if agent := r.Header.Get("User-Agent"); one != "" && agent != one {
		t.Errorf("the request says more of the user than it must: %q", agent)
	}
	if instead != nil && instead(w, path, content) {
		return
	}
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)))
	_, _ = w.Write(content) // the client says what it misses
}

// AnswerInstead lets a function answer requests in place of the server, as far as it returns true.
func (s *Server) AnswerInstead(answer func(w http.ResponseWriter, path string, content []byte) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.instead = answer
}

// ExpectAgent sets the only User-Agent that requests may have.
func (s *Server) ExpectAgent(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oneAgent = name
}

// TakeRequests returns the paths that were asked for, and forgets them.
func (s *Server) TakeRequests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := s.asked
	s.asked = nil
	return asked
}

// Publish adds a release with a program, and makes it the newest.
func (s *Server) Publish(t *testing.T, version string, program []byte) {
	t.Helper()
	files := map[string][]byte{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		for _, arch := range []string{"amd64", "arm64"} {
			own := []byte("a program for another system\n")
			if system == runtime.GOOS && arch == runtime.GOARCH {
				own = program
			}
			name := release.NameArchive(version, system, arch)
			files[name] = pack(t, name, own)
		}
	}
	s.PublishFiles(t, version, files)
}

// PublishFiles adds a release with files as they are, and makes it the newest.
func (s *Server) PublishFiles(t *testing.T, version string, files map[string][]byte) {
	t.Helper()
	var list strings.Builder
	for name, content := range files {
		fmt.Fprintf(&list, "%x  %s\n", sha256.Sum256(content), name)
	}
	all := map[string][]byte{release.ListName: []byte(list.String()), release.SignatureName: s.Sign(t, []byte(list.String()))}
	for name, content := range files {
		all[name] = content
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, content := range all {
		s.files["download/"+version+"/"+name] = content
		s.files["latest/download/"+name] = content
	}
}

// Put sets a file at a path.
func (s *Server) Put(path string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = content
}

// Get returns the file at a path.
func (s *Server) Get(path string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[path]
}

// Sign returns the signature of a text, in lines of base64 as make release writes it.
func (s *Server) Sign(t *testing.T, text []byte) []byte {
	t.Helper()
	sum := sha256.Sum256(text)
	signature, err := ecdsa.SignASN1(rand.Reader, s.private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(signature)
	return []byte(encoded[:64] + "\n" + encoded[64:] + "\n")
}

// pack returns an archive as a release has it: the program with a few other files, in a directory.
func pack(t *testing.T, name string, program []byte) []byte {
	t.Helper()
	dir := strings.TrimSuffix(strings.TrimSuffix(name, ".tar.gz"), ".zip")
	var out bytes.Buffer
	if strings.HasSuffix(name, ".zip") {
		z := zip.NewWriter(&out)
		for file, content := range map[string][]byte{"LICENSE": []byte("terms\n"), "raddle.exe": program} {
			w, err := z.Create(dir + "/" + file)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(content); err != nil {
				t.Fatal(err)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	g := gzip.NewWriter(&out)
	w := tar.NewWriter(g)
	for _, file := range []struct {
		name    string
		mode    int64
		content []byte
	}{{"LICENSE", 0o644, []byte("terms\n")}, {"completions/raddle", 0o644, []byte("no program\n")}, {"raddle", 0o755, program}} {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/" + file.name, Mode: file.mode, Size: int64(len(file.content)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(file.content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
