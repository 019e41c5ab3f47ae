package redis_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"raddle.dev/internal/testkit/redistest"
	"raddle.dev/store/redis"
)

// writeCertificate writes a certificate for 127.0.0.1 that signs itself, and its key.
func writeCertificate(t *testing.T) (certificate, key string) {
	t.Helper()
	dir := t.TempDir()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("certificate.pem", "CERTIFICATE", signed), write("key.pem", "PRIVATE KEY", encoded)
}

// A store works over TLS with a server whose certificate this machine trusts, and refuses another one. A process reads the certificates that it
// trusts once, so each case is a process of its own.
func TestExtraTLS(t *testing.T) {
	if url := os.Getenv("RADDLE_TEST_TLS"); url != "" {
		s, err := redis.Open(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Append(t.Context(), "t", 0, records("a", 3)); err != nil {
			t.Fatal(err)
		}
		if heads := readHeads(t, s, "t"); len(heads) != 3 {
			t.Errorf("%d records, want 3", len(heads))
		}
		return
	}
	certificate, key := writeCertificate(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	redistest.Start(t, "--tls-port", port, "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-ca-cert-file", certificate, "--tls-auth-clients", "no", "--requirepass", "hunter2-secret")
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for trusted, want := range map[string]string{certificate: "PASS", os.DevNull: "certificate"} {
		c := exec.CommandContext(t.Context(), program, "-test.run", "^TestExtraTLS$", "-test.v")
		c.Env = append(os.Environ(), "RADDLE_TEST_TLS=rediss://:hunter2-secret@127.0.0.1:"+port+"/0", "SSL_CERT_FILE="+trusted, "SSL_CERT_DIR="+t.TempDir())
		out, err := c.CombinedOutput()
		if text := string(out); (err == nil) != (trusted == certificate) || !strings.Contains(text, want) || strings.Contains(text, "hunter2") {
			t.Errorf("with %s trusted: %v\n%s", filepath.Base(trusted), err, text)
		}
	}
}
