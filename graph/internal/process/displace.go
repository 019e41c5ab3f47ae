package process

import (
	"hash/fnv"
	"strconv"
	"strings"
)

// The owner of a lease can say whom it displaced, so that the displaced drive can acknowledge
// that by changing the owner: a store needs nothing but its leases for that.
const (
	markPrefix = "ended/" // of an owner that only means the end of a drive
	afterSign  = "~"      // in front of the displaced owner, in the name of its successor
	nobody     = "-"      // instead of a displaced owner that cannot acknowledge
)

// NewMark returns an owner that displaces another without driving: the run was ended or changed.
func NewMark(displaced string) string {
	return markPrefix + displacedTag(displaced) + "/" + NewOwner()
}

// IsMark reports whether NewMark has made the owner.
func IsMark(owner string) bool { return strings.HasPrefix(owner, markPrefix) }

// NewSuccessor returns the name that an owner has until the one that it displaced has acknowledged.
func NewSuccessor(owner, displaced string) string {
	return owner + afterSign + displacedTag(displaced)
}

// IsWaiting reports whether NewMark or NewSuccessor has made the owner.
func IsWaiting(owner string) bool { return IsMark(owner) || strings.Contains(owner, afterSign) }

// Acknowledge returns who holds the lease of holder after the displaced owner has acknowledged; "" after
// a mark. ok is false if holder does not wait for that owner.
func Acknowledge(holder, displaced string) (next string, ok bool) {
	if rest, ok := strings.CutPrefix(holder, markPrefix); ok {
		return "", strings.HasPrefix(rest, displacedTag(displaced)+"/")
	}
	next, tag, ok := strings.Cut(holder, afterSign)
	return next, ok && tag == displacedTag(displaced)
}

// displacedTag identifies a displaced owner in the name of who displaced it. What a mark means counts instead of
// the mark. An owner that still waits for another cannot acknowledge for that one.
func displacedTag(owner string) string {
	if rest, ok := strings.CutPrefix(owner, markPrefix); ok {
		tag, _, _ := strings.Cut(rest, "/")
		return tag
	}
	if strings.Contains(owner, afterSign) {
		return nobody
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(owner)) // a hash never fails
	return strconv.FormatUint(h.Sum64(), 36)
}
