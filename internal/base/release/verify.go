package release

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// VerifySignature returns an error unless signature, which is ASN.1 in base64, is one of the text by the key.
func VerifySignature(key string, text, signature []byte) error {
	der, err := base64.StdEncoding.DecodeString(key)
	if err != nil {
		return fmt.Errorf("the key is not base64: %w", err)
	}
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return fmt.Errorf("the key cannot be read: %w", err)
	}
	public, ok := parsed.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() {
		return errors.New("the key is not one of ECDSA on P-256")
	}
	sig, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(string(signature)), ""))
	if err != nil {
		return fmt.Errorf("the signature is not base64: %w", err)
	}
	sum := sha256.Sum256(text)
	if !ecdsa.VerifyASN1(public, sum[:], sig) {
		return errors.New("the signature is not one of this text by the key of the releases")
	}
	return nil
}

// A Manifest is a list of checksums whose signature has been verified.
type Manifest struct {
	Version string            // of the release, such as v1.2.3
	sums    map[string]string // SHA-256 in hexadecimal digits, by file
}

// ReadManifest verifies the list of checksums of a release, and reads it. The version is that in the names of its
// archives: the signature covers it, so that no server can give an old release a new number.
func ReadManifest(key string, list, signature []byte) (*Manifest, error) {
	if err := VerifySignature(key, list, signature); err != nil {
		return nil, err
	}
	m := &Manifest{sums: map[string]string{}}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		if len(fields) != 2 || len(fields[0]) != hex.EncodedLen(sha256.Size) {
			return nil, fmt.Errorf("%q is no line of a list of checksums", strings.TrimSpace(line))
		}
		name := strings.TrimPrefix(fields[1], "*")
		if m.sums[name] != "" {
			return nil, fmt.Errorf("the list names %s twice", name)
		}
		m.sums[name] = strings.ToLower(fields[0])
		if err := m.learnVersion(name); err != nil {
			return nil, err
		}
	}
	if m.Version == "" {
		return nil, errors.New("the list names no archive of raddle")
	}
	return m, nil
}

// learnVersion takes the version of the release from the name of an archive of Linux, which each release has.
func (m *Manifest) learnVersion(name string) error {
	rest, isOurs := strings.CutPrefix(name, "raddle_")
	text, isArchive := strings.CutSuffix(rest, "_linux_amd64.tar.gz")
	if !isOurs || !isArchive {
		return nil
	}
	if _, ok := parseVersion(text); !ok || m.Version != "" {
		return fmt.Errorf("%s names no version, or a second one", name)
	}
	m.Version = "v" + text
	return nil
}

// Check returns an error unless a file is the one that the release has under its name.
func (m *Manifest) Check(name string, content []byte) error {
	want := m.sums[name]
	if want == "" {
		return fmt.Errorf("release %s has no %s", m.Version, name)
	}
	sum := sha256.Sum256(content)
	if got := hex.EncodeToString(sum[:]); got != want {
		return fmt.Errorf("%s is not the file of release %s: its SHA-256 is %s, and should be %s", name, m.Version, got, want)
	}
	return nil
}
