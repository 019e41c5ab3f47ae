package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"strings"
)

// makeKey writes a new private key to a file that does not exist yet, and returns the public key as programs and scripts
// have it: SubjectPublicKeyInfo in base64, in one line.
func makeKey(file string) (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return "", err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	if err := errors.Join(pem.Encode(f, &pem.Block{Type: "PRIVATE KEY", Bytes: der}), f.Close()); err != nil {
		return "", err
	}
	return formatPublic(key)
}

func formatPublic(key *ecdsa.PrivateKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	return base64.StdEncoding.EncodeToString(der), err
}

// readKey reads the private key from a file, and returns an error unless it belongs to the public key that the programs
// of the release have: what it signs would be refused by all of them.
func readKey(file, public string) (*ecdsa.PrivateKey, error) {
	if file == "" {
		return nil, errors.New("RADDLE_SIGNING_KEY is not set: it is the file with the private key; see docs/release.md")
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s has no key in PEM", file)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParseECPrivateKey(block.Bytes)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || key.Curve != elliptic.P256() {
		return nil, fmt.Errorf("%s has no private key of ECDSA on P-256", file)
	}
	own, err := formatPublic(key)
	if err == nil && own != public {
		err = fmt.Errorf("the key in %s is not that of RADDLE_RELEASE_KEY, with which the programs are built. Its public key is %s", file, own)
	}
	return key, err
}

// signText returns the signature of a text: ASN.1 in base64, in the lines that openssl reads.
func signText(key *ecdsa.PrivateKey, text []byte) ([]byte, error) {
	sum := sha256.Sum256(text)
	der, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return nil, err
	}
	encoded := base64.StdEncoding.EncodeToString(der)
	var out strings.Builder
	for len(encoded) > 64 {
		out.WriteString(encoded[:64] + "\n")
		encoded = encoded[64:]
	}
	out.WriteString(encoded + "\n")
	return []byte(out.String()), nil
}

// signFile writes the signature of a file.
func signFile(key *ecdsa.PrivateKey, file, signature string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	signed, err := signText(key, text)
	if err != nil {
		return err
	}
	return os.WriteFile(signature, signed, 0o644)
}
