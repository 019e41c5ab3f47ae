package main

import (
	"archive/zip"
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSignatures: openssl takes what is signed, and a key that is not that of the programs is refused.
func TestSignatures(t *testing.T) {
	dir := t.TempDir()
	private, list := filepath.Join(dir, "key.pem"), filepath.Join(dir, "checksums.txt")
	public, err := makeKey(private)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := makeKey(private); err == nil {
		t.Error("a key was overwritten")
	}
	sum := strings.Repeat("0", 64)
	if err := os.WriteFile(list, []byte(sum+"  raddle_1.2.3_linux_amd64.tar.gz\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	key, err := readKey(private, public)
	if err != nil {
		t.Fatal(err)
	}
	if err := signFile(key, list, list+".sig"); err != nil {
		t.Fatal(err)
	}
	script := `openssl base64 -d -in checksums.txt.sig -out sig && openssl ec -in key.pem -pubout -out pub.pem 2>/dev/null && openssl dgst -sha256 -verify pub.pem -signature sig checksums.txt`
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "Verified OK") {
		t.Errorf("%v\n%s", err, out)
	}
	other, err := makeKey(filepath.Join(dir, "other.pem"))
	if err != nil {
		t.Fatal(err)
	}
	for file, public := range map[string]string{"": public, private: other, list: public, filepath.Join(dir, "none"): public} {
		if _, err := readKey(file, public); err == nil {
			t.Errorf("%q was taken", file)
		}
	}
	checkProvenance(t, key, list, filepath.Join(dir, "provenance.json"), sum)
}

func checkProvenance(t *testing.T, key *ecdsa.PrivateKey, list, file, sum string) {
	t.Helper()
	if err := writeProvenance(makeModule(t), list, file, key); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		PayloadType string
		Payload     []byte
		Signatures  []struct{ Sig []byte }
	}
	var s statement
	if err := json.Unmarshal(text, &e); err != nil || len(e.Signatures) != 1 {
		t.Fatalf("%v\n%s", err, text)
	}
	hash := sha256.Sum256(encodeForSignature(e.Payload))
	if !ecdsa.VerifyASN1(&key.PublicKey, hash[:], e.Signatures[0].Sig) {
		t.Error("the statement is not signed")
	}
	if err := json.Unmarshal(e.Payload, &s); err != nil || len(s.Subject) != 1 || s.Subject[0].Digest["sha256"] != sum || len(s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]) != 40 {
		t.Errorf("%v\n%s", err, e.Payload)
	}
}

func TestKeysAreOfOneKind(t *testing.T) {
	public, err := makeKey(filepath.Join(t.TempDir(), "key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	der, err := base64.StdEncoding.DecodeString(public)
	if err != nil || len(der) != 91 { // install.ps1 takes the point from its place in these bytes
		t.Errorf("%d bytes, %v", len(der), err)
	}
	if _, err := x509.ParsePKIXPublicKey(der); err != nil {
		t.Error(err)
	}
}

func TestVersionsOfPyPI(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3rc1", "1.2.3-alpha.2": "1.2.3a2", "0.0.1-dev.1796057400": "0.0.1.dev1796057400", "1.2.3-final": "", "1.2.3-rc1": ""} {
		if got, err := pypiVersion(version); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %q, %v", version, got, err)
		}
	}
}

// TestPackages: the same program makes the same packages, a wheel has the checksums of its files, and names of npm may
// have an owner.
func TestPackages(t *testing.T) {
	t.Chdir(filepath.Join("..", ".."))
	t.Setenv("RADDLE_NPM", "@owner/raddle")
	t.Setenv("RADDLE_PYPI", "raddle-agents")
	program := filepath.Join(t.TempDir(), "raddle")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	when := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	var made [2]map[string][]byte
	for i := range made {
		dir := t.TempDir()
		for platform := range registryPlatforms {
			goos, goarch, _ := strings.Cut(platform, "/")
			if err := writePackages(program, goos, goarch, "1.2.3", dir, when); err != nil {
				t.Fatal(err)
			}
		}
		if err := writeMainNPM("1.2.3", dir, when); err != nil {
			t.Fatal(err)
		}
		made[i] = readAll(t, dir)
	}
	if len(made[0]) != 2*len(registryPlatforms)+1 {
		t.Errorf("%d packages", len(made[0]))
	}
	for name, content := range made[0] {
		if !bytes.Equal(content, made[1][name]) {
			t.Errorf("%s differs", name)
		}
	}
	for _, name := range []string{"owner-raddle-1.2.3.tgz", "owner-raddle-linux-x64-1.2.3.tgz", "owner-raddle-win32-arm64-1.2.3.tgz"} {
		if made[0][name] == nil {
			t.Errorf("there is no %s", name)
		}
	}
	wheel := made[0]["raddle_agents-1.2.3-py3-none-macosx_12_0_arm64.whl"]
	z, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	record, err := z.Open("raddle_agents-1.2.3.dist-info/RECORD")
	if err != nil {
		t.Fatal(err)
	}
	var lines bytes.Buffer
	if _, err := lines.ReadFrom(record); err != nil || strings.Count(lines.String(), "\n") != len(z.File) {
		t.Errorf("%v\n%s", err, lines.String())
	}
	if f := z.File[0]; f.Name != "raddle_agents-1.2.3.data/scripts/raddle" || f.Mode().Perm() != 0o755 {
		t.Errorf("%s %s", f.Name, f.Mode())
	}
	if err := writePackages(program, "plan9", "amd64", "1.2.3", t.TempDir(), when); err == nil {
		t.Error("packages for an unknown platform")
	}
}

func readAll(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]byte{}
	for _, e := range entries {
		if out[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return out
}
