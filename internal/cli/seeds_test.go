package cli_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
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

	"raddle.dev/internal/testneed"
)

// TestSeeds runs the archives of testdata/seeds: one for each example of the documents that the file formats come from. The
// examples stand there as they were written, with as much around them as they name.
func TestSeeds(t *testing.T) {
	testneed.RequirePrograms(t, "bash", "curl", "python3")
	params := scriptParams("testdata/seeds")
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
