package tool

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"unicode/utf8"
)

// A FileChange is what a call did to a file. Its JSON has no contents, so that it can be part of an event: only the
// JSON of a [Result] has them, which is for the journal.
//
// A call that a crash interrupts after the change and before its outcome is recorded runs again if it may be repeated.
// Then the content that the first try replaced is unknown, and there may be no FileChange for it.
type FileChange struct {
	Path    string     `json:"path"` // absolute, without links
	Kind    ChangeKind `json:"kind"`
	Added   int        `json:"added"`   // lines
	Removed int        `json:"removed"` // lines

	Before *FileImage `json:"-"` // nil: the file did not exist
	After  *FileImage `json:"-"` // nil: the file does not exist
	// Withheld says why the images have no text; empty: they have it.
	Withheld WithheldReason `json:"withheld,omitempty"`
}

// A ChangeKind says what happened to a file.
type ChangeKind string

// The kinds of changes.
const (
	FileCreated ChangeKind = "created"
	FileChanged ChangeKind = "changed"
	FileRemoved ChangeKind = "removed"
)

// A WithheldReason says why the content of a file is not part of a change.
type WithheldReason string

// The reasons, with what is known of the file nevertheless.
const (
	WithheldLarge   WithheldReason = "large"   // more than [MaxImage] bytes: size and hash
	WithheldBinary  WithheldReason = "binary"  // not UTF-8 text: size and hash
	WithheldSpecial WithheldReason = "special" // a link or a device: nothing
	WithheldSecret  WithheldReason = "secret"  // it has a secret, or may not be read: nothing
)

// MaxImage is how many bytes of a file's content a change has at most.
const MaxImage = 1 << 20

// A FileImage is a file at one moment.
type FileImage struct {
	Mode fs.FileMode // its permission bits
	Size int64
	Hash string // SHA-256 in hexadecimal digits; empty if the change is withheld as secret or special
	Text string // empty if the content is withheld
}

// Redact returns the change without images and path if they contain what redact removes.
func (c FileChange) Redact(redact func(string) string) FileChange {
	secret := false
	for _, image := range []*FileImage{c.Before, c.After} {
		secret = secret || image != nil && redact(image.Text) != image.Text
	}
	path := redact(c.Path)
	if secret || path != c.Path {
		c.Path = path
		return c.Withhold(WithheldSecret)
	}
	return c
}

// Withhold returns the change without the texts of the files, and for a secret without their hashes.
func (c FileChange) Withhold(why WithheldReason) FileChange {
	strip := func(image *FileImage) *FileImage {
		if image == nil {
			return nil
		}
		stripped := FileImage{Mode: image.Mode, Size: image.Size, Hash: image.Hash}
		if why == WithheldSecret || why == WithheldSpecial {
			stripped.Hash = ""
		}
		return &stripped
	}
	c.Before, c.After, c.Withheld = strip(c.Before), strip(c.After), why
	return c
}

// changeRecord is the form of a change in the journal.
type changeRecord struct {
	FileChange
	Before *imageRecord `json:"before,omitempty"`
	After  *imageRecord `json:"after,omitempty"`
}

// imageRecord is the form of an image in the journal. The text of a file after a change has its beginning and its end
// in common with the text before it as a rule: only the part between them is recorded.
type imageRecord struct {
	Mode uint32 `json:"mode"`
	Size int64  `json:"size"`
	Hash string `json:"sha256,omitempty"`
	Head int    `json:"head,omitempty"` // bytes from the start of the text before the change
	Tail int    `json:"tail,omitempty"` // bytes from its end
	Text string `json:"text,omitempty"` // what is between them
}

func recordChange(c FileChange) changeRecord {
	r := changeRecord{FileChange: c, Before: recordImage(c.Before, ""), After: recordImage(c.After, "")}
	if c.Before != nil {
		r.After = recordImage(c.After, c.Before.Text)
	}
	return r
}

func recordImage(image *FileImage, before string) *imageRecord {
	if image == nil {
		return nil
	}
	head, tail := commonEnds(before, image.Text)
	return &imageRecord{Mode: uint32(image.Mode), Size: image.Size, Hash: image.Hash, Head: head, Tail: tail, Text: image.Text[head : len(image.Text)-tail]}
}

// commonEnds returns the lengths of the beginning and the end that two texts have in common. They do not overlap, and
// do not divide a character.
func commonEnds(a, b string) (head, tail int) {
	shorter := min(len(a), len(b))
	for head < shorter && a[head] == b[head] {
		head++
	}
	for head > 0 && (head < len(a) && !utf8.RuneStart(a[head]) || head < len(b) && !utf8.RuneStart(b[head])) {
		head--
	}
	for tail < shorter-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	for tail > 0 && (!utf8.RuneStart(a[len(a)-tail]) || !utf8.RuneStart(b[len(b)-tail])) {
		tail--
	}
	return head, tail
}

// change returns the change that was recorded.
func (r changeRecord) change() (FileChange, error) {
	c := r.FileChange
	var err error
	if c.Before, err = r.Before.image(""); err != nil {
		return c, err
	}
	before := ""
	if c.Before != nil {
		before = c.Before.Text
	}
	c.After, err = r.After.image(before)
	return c, err
}

func (r *imageRecord) image(before string) (*FileImage, error) {
	if r == nil {
		return nil, nil
	}
	if r.Head < 0 || r.Tail < 0 || r.Head+r.Tail > len(before) {
		return nil, fmt.Errorf("the recorded change of a file has a part that is longer than the file")
	}
	return &FileImage{Mode: fs.FileMode(r.Mode), Size: r.Size, Hash: r.Hash, Text: before[:r.Head] + r.Text + before[len(before)-r.Tail:]}, nil
}

func marshalChanges(changes []FileChange) ([]byte, error) {
	records := make([]changeRecord, len(changes))
	for i, c := range changes {
		records[i] = recordChange(c)
	}
	return json.Marshal(records)
}

func unmarshalChanges(data []byte) ([]FileChange, error) {
	var records []changeRecord
	if err := json.Unmarshal(data, &records); err != nil || len(records) == 0 {
		return nil, err
	}
	changes := make([]FileChange, len(records))
	for i, r := range records {
		c, err := r.change()
		if err != nil {
			return nil, err
		}
		changes[i] = c
	}
	return changes, nil
}
