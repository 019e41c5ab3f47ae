package keystore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/zalando/go-keyring"

	"raddle.dev/internal/base/environ"
)

// bus is an environment in which there may be a keychain on every system.
var bus = environ.Environ{"DBUS_SESSION_BUS_ADDRESS=unix:path=/nowhere"}

func TestKeychain(t *testing.T) {
	keyring.MockInit()
	dir := t.TempDir()
	s := New(dir, bus)
	if place, why, err := s.Save("openai", "sk-one", false); place != Keychain || why != nil || err != nil {
		t.Fatalf("Save: %v, %v, %v", place, why, err)
	}
	if text, err := os.ReadFile(s.Path()); err != nil || strings.Contains(string(text), "sk-one") {
		t.Errorf("the file is %s, %v", text, err)
	}
	other := New(dir, bus)
	if other.PlaceOf("openai") != Keychain || other.PlaceOf("gemini") != Nowhere {
		t.Error("another store does not know the key")
	}
	if key, err := other.Read("openai"); key != "sk-one" || err != nil {
		t.Errorf("Read: %q, %v", key, err)
	}
	if keys := other.FileKeys(); keys != nil {
		t.Errorf("keys in the file: %v", keys)
	}
	// A key that moves to the file leaves the keychain.
	if place, _, err := other.Save("openai", "sk-two", true); place != File || err != nil {
		t.Fatalf("Save: %v, %v", place, err)
	}
	if _, err := keyring.Get(service, "openai"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("the keychain has the old key: %v", err)
	}
	if _, _, err := other.Save("openai", "sk-three", false); err != nil {
		t.Fatal(err)
	}
	if place, err := other.Remove("openai"); place != Keychain || err != nil {
		t.Errorf("Remove: %v, %v", place, err)
	}
	if _, err := keyring.Get(service, "openai"); !errors.Is(err, keyring.ErrNotFound) {
		t.Errorf("the keychain has the key: %v", err)
	}
	if place, err := other.Remove("openai"); place != Nowhere || err != nil {
		t.Errorf("Remove: %v, %v", place, err)
	}
}

func TestKeychainThatCannotBeUsed(t *testing.T) {
	locked := errors.New("locked")
	keyring.MockInitWithError(locked)
	s := New(t.TempDir(), bus)
	place, why, err := s.Save("openai", "sk-one", false)
	if place != File || !errors.Is(why, locked) || err != nil {
		t.Fatalf("Save: %v, %v, %v", place, why, err)
	}
	if key, err := s.Read("openai"); key != "sk-one" || err != nil {
		t.Errorf("Read: %q, %v", key, err)
	}
}

func TestFile(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	s := New(dir, nil)
	for client, key := range map[string]string{"openai": "sk-one", "gemini": "sk-two"} {
		if _, _, err := s.Save(client, key, true); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(s.Path(), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Save("openai", "sk-three", true); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(s.Path()); err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if names, err := s.Names(); err != nil || !cmp.Equal(names, []string{"gemini", "openai"}) {
		t.Errorf("Names: %v, %v", names, err)
	}
	if key, err := New(dir, nil).Read("openai"); key != "sk-three" || err != nil {
		t.Errorf("Read: %q, %v", key, err)
	}
	if keys := New(dir, nil).FileKeys(); len(keys) != 2 {
		t.Errorf("FileKeys: %v", keys)
	}
	if err := os.WriteFile(s.Path(), []byte(`{"openai": {"key": "sk-`), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := New(dir, nil)
	if _, _, err := broken.Save("gemini", "sk-four", true); err == nil || strings.Contains(err.Error(), "sk-") {
		t.Errorf("Save: %v", err)
	}
	if broken.PlaceOf("openai") != Nowhere {
		t.Error("a broken file has keys")
	}
	var none *Store
	if key, err := none.Read("openai"); key != "" || err != nil || none.PlaceOf("openai") != Nowhere {
		t.Errorf("no store: %q, %v", key, err)
	}
}
