// Package release knows the releases of this program: where they are, whether a file is one of them and is not older
// than this program, how this program came onto the machine, and how its file is replaced.
package release

import (
	"cmp"
	"fmt"
	"net/url"
	"runtime"
	"strconv"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/netplace"
)

// The linker sets these variables in the programs of a release; docs/release.md says how. They are empty in every other
// program, which then has no releases to ask for.
var (
	// Version is that of the release, such as v1.2.3.
	Version string
	// Address is where the releases are, such as https://HOST/OWNER/raddle/releases. Hosts to which the server there may
	// send a download follow it, after spaces; one that begins with a dot means all below it.
	Address string
	// Key is the public key with which releases are signed: ECDSA on P-256, as SubjectPublicKeyInfo in base64.
	Key string
)

// A Source is where releases come from, and the key that signs them.
type Source struct {
	base  *url.URL
	hosts []string // that a redirect may lead to, next to the host of base
	key   string
}

// FindSource returns the source that this program was built with.
func FindSource() (*Source, error) { return NewSource(Address, Key) }

// NewSource returns a source for the values of [Address] and [Key].
func NewSource(address, key string) (*Source, error) {
	fields := strings.Fields(address)
	if len(fields) == 0 || key == "" {
		return nil, failure.NewUsage("update it the way that you installed it: raddle help install", "this program was built without the address of releases or the key that signs them, so it cannot look for a newer one")
	}
	base, err := url.Parse(strings.TrimSuffix(fields[0], "/"))
	if err != nil || base.Host == "" || base.User != nil || !isSafe(base) {
		return nil, failure.NewInvalid("build raddle with an https address: docs/release.md", "the address of releases, %q, is none of https", fields[0])
	}
	return &Source{base: base, hosts: fields[1:], key: key}, nil
}

// isSafe reports whether what comes from an address comes from its server unchanged: with https, or from this machine.
func isSafe(u *url.URL) bool {
	return u.Scheme == "https" || u.Scheme == "http" && netplace.IsThisMachine(u.Hostname())
}

// allows reports whether the source may be asked at an address.
func (s *Source) allows(u *url.URL) bool {
	if !isSafe(u) {
		return false
	}
	if u.Host == s.base.Host {
		return true
	}
	for _, host := range s.hosts {
		if u.Host == host || strings.HasPrefix(host, ".") && strings.HasSuffix(u.Host, host) {
			return true
		}
	}
	return false
}

// String returns the address of the source.
func (s *Source) String() string { return s.base.String() }

// ListName is the file of a release that has the checksums of the others, and SignatureName its signature.
const (
	ListName      = "checksums.txt"
	SignatureName = "checksums.txt.sig"
)

// NameArchive returns the name of the archive of a version for a platform.
func NameArchive(version, system, arch string) string {
	ending := ".tar.gz"
	if system == "windows" {
		ending = ".zip"
	}
	return fmt.Sprintf("raddle_%s_%s_%s%s", strings.TrimPrefix(version, "v"), system, arch, ending)
}

// nameOwnArchive returns the name of the archive for this platform.
func nameOwnArchive(version string) string {
	return NameArchive(version, runtime.GOOS, runtime.GOARCH)
}

// Compare compares two versions such as v1.2.3 and v1.3.0-rc.1 as semantic versions are ordered: it is negative if a is
// older than b. ok is false if one of them is no such version.
func Compare(a, b string) (order int, ok bool) {
	x, xOK := parseVersion(a)
	y, yOK := parseVersion(b)
	if !xOK || !yOK {
		return 0, false
	}
	for i := range x.numbers {
		if order := cmp.Compare(x.numbers[i], y.numbers[i]); order != 0 {
			return order, true
		}
	}
	return comparePre(x.pre, y.pre), true
}

// A version is the parts of one, without what was built.
type version struct {
	numbers [3]uint64
	pre     []string
}

func parseVersion(text string) (v version, ok bool) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	text, pre, hasPre := strings.Cut(text, "-")
	if hasPre {
		v.pre = strings.Split(pre, ".")
		for _, part := range v.pre {
			if !isIdentifier(part) {
				return v, false
			}
		}
	}
	numbers := strings.Split(text, ".")
	if len(numbers) != len(v.numbers) {
		return v, false
	}
	for i, text := range numbers {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil || strconv.FormatUint(n, 10) != text {
			return v, false
		}
		v.numbers[i] = n
	}
	return v, true
}

// isIdentifier reports whether a text can be a part of what follows the dash of a version.
func isIdentifier(text string) bool {
	return text != "" && strings.Trim(text, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-") == ""
}

// comparePre compares what follows the dash. A version without it is the newer one.
func comparePre(a, b []string) int {
	if len(a) == 0 || len(b) == 0 {
		return cmp.Compare(len(b), len(a))
	}
	for i := range min(len(a), len(b)) {
		x, xErr := strconv.ParseUint(a[i], 10, 64)
		y, yErr := strconv.ParseUint(b[i], 10, 64)
		order := 0
		switch {
		case xErr == nil && yErr == nil:
			order = cmp.Compare(x, y)
		case xErr == nil:
			order = -1
		case yErr == nil:
			order = 1
		default:
			order = cmp.Compare(a[i], b[i])
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
}
