package keystore

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zalando/go-keyring"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
)

// FileName is the name of the file in the directory of config.yaml.
const FileName = "keys.json"

// A Place is where a key is stored.
type Place string

// These are the places.
const (
	Nowhere  Place = ""
	Keychain Place = "keychain"
	File     Place = "file"
)

// ErrUnreachable reports a keychain that did not answer in time: it may be locked.
var ErrUnreachable = errors.New("the keychain does not answer; it may be locked")

// service is the name under which the keychain stores the keys.
const service = "raddle"

// keychainWait is how long a keychain may take, with the time in which a person unlocks it.
const keychainWait = 30 * time.Second

// A Store has the stored keys by the names of their clients. It is safe for concurrent use. A nil Store has no keys.
type Store struct {
	path   string
	usable bool // there may be a keychain

	mu      sync.Mutex
	entries map[string]keyEntry // nil: not read
	fault   error               // of the file
}

// A keyEntry says where a key is.
type keyEntry struct {
	Place Place  `json:"place"`
	Key   string `json:"key,omitempty"` // if Place is File
}

// New returns the store in a directory. It reads nothing.
func New(dir string, env environ.Environ) *Store {
	return &Store{path: filepath.Join(dir, FileName), usable: hasKeychain(env)}
}

// hasKeychain reports whether this system may have a keychain. On Linux and BSD that is a service on a message bus that
// is already running: none is started for it.
func hasKeychain(env environ.Environ) bool {
	switch runtime.GOOS {
	case "darwin", "windows":
		return true
	}
	bus, ok := env.Lookup("DBUS_SESSION_BUS_ADDRESS")
	return ok && !strings.HasPrefix(bus, "autolaunch:")
}

// Path returns the path of the file.
func (s *Store) Path() string { return s.path }

// readFile reads the file, once. The caller must hold mu.
func (s *Store) readFile() (map[string]keyEntry, error) {
	if s.entries != nil || s.fault != nil {
		return s.entries, s.fault
	}
	s.entries = map[string]keyEntry{}
	text, err := os.ReadFile(s.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.entries = nil
		s.fault = err
	default:
		if err := json.Unmarshal(text, &s.entries); err != nil {
			s.entries = nil
			// a quote could show a key
			s.fault = fmt.Errorf("%s is not valid: delete it and store the keys again with raddle login", s.path)
		}
	}
	return s.entries, s.fault
}

// PlaceOf returns where the key of a client is stored. It does not read the key.
func (s *Store) PlaceOf(client string) Place {
	if s == nil {
		return Nowhere
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, _ := s.readFile()
	return entries[client].Place
}

// Names returns the clients whose keys are stored. The error is that of the file.
func (s *Store) Names() ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.readFile()
	return slices.Sorted(maps.Keys(entries)), err
}

// FileKeys returns the keys that are in the file itself.
func (s *Store) FileKeys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, _ := s.readFile()
	for _, e := range entries {
		if e.Place == File {
			keys = append(keys, e.Key)
		}
	}
	return keys
}

// Read returns the stored key of a client, "" if there is none.
func (s *Store) Read(client string) (string, error) {
	if s == nil {
		return "", nil
	}
	s.mu.Lock()
	entries, err := s.readFile()
	e := entries[client]
	s.mu.Unlock()
	if err != nil || e.Place != Keychain {
		return e.Key, err
	}
	return askKeychain(func() (string, error) { return keyring.Get(service, client) })
}

// Save stores the key of a client. It uses the file if fileOnly is set or if the keychain cannot be used; then why is
// the reason.
func (s *Store) Save(client, key string, fileOnly bool) (place Place, why, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.readFile()
	if err != nil {
		return Nowhere, nil, err
	}
	e := keyEntry{Place: File, Key: key}
	if s.usable && !fileOnly {
		if _, why = askKeychain(func() (string, error) { return "", keyring.Set(service, client, key) }); why == nil {
			e = keyEntry{Place: Keychain}
		}
	}
	if e.Place == File && entries[client].Place == Keychain {
		_ = deleteFromKeychain(client) // it is not used any more
	}
	entries[client] = e
	return e.Place, why, s.writeFile()
}

// Remove removes the stored key of a client, and returns where it was.
func (s *Store) Remove(client string) (Place, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := s.readFile()
	if err != nil {
		return Nowhere, err
	}
	place := entries[client].Place
	if place == Nowhere {
		return place, nil
	}
	if place == Keychain {
		if err := deleteFromKeychain(client); err != nil && !errors.Is(err, keyring.ErrNotFound) {
			return place, err
		}
	}
	delete(entries, client)
	return place, s.writeFile()
}

// writeFile writes the file for the user only. The caller must hold mu.
func (s *Store) writeFile() error {
	text, err := json.MarshalIndent(s.entries, "", "  ")
	if err != nil {
		return err
	}
	if info, err := os.Stat(s.path); err == nil && info.Mode().Perm() != 0o600 {
		if err := os.Chmod(s.path, 0o600); err != nil {
			return err
		}
	}
	return config.WritePrivate(s.path, append(text, '\n'))
}

func deleteFromKeychain(client string) error {
	_, err := askKeychain(func() (string, error) { return "", keyring.Delete(service, client) })
	return err
}

// askKeychain calls the keychain, which may wait for a person.
func askKeychain(call func() (string, error)) (key string, err error) {
	type result struct {
		key string
		err error
	}
	done := make(chan result, 1)
	go func() {
		key, err := call()
		done <- result{key, err}
	}()
	timer := time.NewTimer(keychainWait)
	defer timer.Stop()
	select {
	case r := <-done:
		return r.key, r.err
	case <-timer.C:
		return "", ErrUnreachable
	}
}
