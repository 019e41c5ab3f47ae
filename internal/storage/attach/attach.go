// Package attach decides what a file is that a person or a client adds to a prompt: a text, a picture or a document.
// Texts become part of the prompt; pictures and documents become parts of the message.
//
// It looks at the first bytes of a file and at its name, and decodes nothing: a picture that would fill the memory of
// its reader is only bytes here.
package attach

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
	"raddle.dev/llm"
)

// These limits are those of pictures and documents. They are below what most providers take; a provider that takes less
// says so itself.
const (
	MaxMedia   = 10 << 20 // bytes of one of them
	MaxMessage = 20 << 20 // bytes of all of them in one message
	MaxCount   = 20       // of them in one message
)

// MaxBody is the size of the largest request of a protocol whose messages may have pictures and documents, in bytes:
// those in base64, and 4 MiB.
const MaxBody = MaxMessage/3*4 + 4<<20

// MaxText is the size of a text that comes with a message of a protocol, in bytes.
const MaxText = 1 << 20

// A File is something that was added to a prompt: Text, or Media with its bytes.
type File struct {
	Name  string   `json:"name"`
	Text  string   `json:"text,omitempty"`
	Media llm.Part `json:"media,omitempty"` // an [llm.Image] or an [llm.File]; nil: it is a text
}

// An Attachment describes a picture or a document without its bytes.
type Attachment struct {
	Name  string `json:"name,omitempty"`
	MIME  string `json:"mime"`
	Bytes int    `json:"bytes"`
}

// advice says what can be attached.
const advice = "text, PNG, JPEG, GIF, WebP and PDF can be attached"

// extensions are the names of files that promise a picture or a document.
var extensions = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".pdf"}

// Mark stands before the line of a file that is attached.
const Mark = "📎 "

// PDF is the media type of documents.
const PDF = "application/pdf"

// Sniff returns the media type of a picture or a document by its first bytes, or "" for anything else.
func Sniff(content []byte) string {
	const webpHead, pngHead = 12, 24 // up to the format, and up to the height
	switch {
	case len(content) > pngHead && bytes.HasPrefix(content, []byte("\x89PNG\r\n\x1a\n")) && string(content[12:16]) == "IHDR":
		return "image/png"
	case bytes.HasPrefix(content, []byte("\xff\xd8\xff")):
		return "image/jpeg"
	case bytes.HasPrefix(content, []byte("GIF87a")), bytes.HasPrefix(content, []byte("GIF89a")):
		return "image/gif"
	case len(content) > webpHead && string(content[:4]) == "RIFF" && string(content[8:webpHead]) == "WEBP":
		return "image/webp"
	case bytes.HasPrefix(content, []byte("%PDF-")):
		return PDF
	}
	return ""
}

// IsMediaName reports whether a name promises a picture or a document. What the file is, its bytes decide.
func IsMediaName(name string) bool {
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(name)))
}

// New returns a file by its content. The error says why it cannot be attached, and what can.
func New(name string, content []byte) (File, error) {
	kind := Sniff(content)
	switch {
	case kind != "" && len(content) > MaxMedia:
		return File{}, newTooLarge(name, len(content), MaxMedia)
	case kind == PDF:
		return File{Name: name, Media: llm.File{Name: baseName(name), MIME: kind, Data: content}}, nil
	case kind != "":
		return File{Name: name, Media: llm.Image{MIME: kind, Data: content}}, nil
	case IsMediaName(name) && len(content) == 0:
		return File{}, failure.NewUsage(advice, "%s is empty", name)
	case IsMediaName(name):
		return File{}, failure.NewUsage(advice, "%s is named like a picture or a document, and its content is neither", name)
	case !utf8.Valid(content):
		return File{}, failure.NewUsage(advice, "%s is not UTF-8 text, and no picture or document that models take", name)
	}
	return File{Name: name, Text: string(content)}, nil
}

// baseName returns the last part of a path of any system.
func baseName(name string) string { return path.Base(filepath.ToSlash(name)) }

func newTooLarge(name string, size, most int) error {
	return failure.NewUsage("make it smaller, or name a part of it", "%s has %s, and may have %s", name, wording.FormatBytes(size), wording.FormatBytes(most))
}

// Read returns the file at a path. A text has at most mostText bytes. argument says that a person has written the path
// on a command line, where a shell may have opened it.
func Read(path, name string, mostText int, argument bool) (File, error) {
	open := plainfile.Open
	if argument {
		open = plainfile.OpenArgument
	}
	f, err := open(path)
	if err != nil {
		return File{}, failure.NewUsage("", "%v", err)
	}
	defer func() { _ = f.Close() }() // only reads
	return readFrom(f, name, mostText)
}

// ReadBeneath is [Read] for a file that must lie beneath the directory root: a link that leads out of it is an error.
func ReadBeneath(root, path, name string, mostText int) (File, error) {
	f, err := plainfile.OpenBeneath(root, path)
	if err != nil {
		return File{}, failure.NewUsage("", "%v", err)
	}
	defer func() { _ = f.Close() }() // only reads
	return readFrom(f, name, mostText)
}

// readFrom reads a file, and no more of it than it may have.
func readFrom(r io.Reader, name string, mostText int) (File, error) {
	content, err := io.ReadAll(io.LimitReader(r, int64(max(mostText, MaxMedia))+1))
	if err != nil {
		return File{}, failure.NewUsage("", "%v", err)
	}
	most := mostText
	if Sniff(content) != "" {
		most = MaxMedia
	}
	if len(content) > most {
		return File{}, failure.NewUsage("make it smaller, or let the agent read a part of it", "%s is larger than %s", name, wording.FormatBytes(most))
	}
	return New(name, content)
}

// NewBase64 returns a file whose content a client has sent in base64. declared is the media type that the client named,
// or ""; a text has at most mostText bytes. Sizes are checked before anything is decoded.
func NewBase64(name, declared, data string, mostText int) (File, error) {
	declared = strings.ToLower(declared)
	most := max(mostText, MaxMedia)
	if isMediaType(declared) {
		most = MaxMedia
	}
	if size := DecodedSize(data); size > most {
		return File{}, newTooLarge(name, size, most)
	}
	content, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return File{}, &failure.Error{Kind: failure.Usage, Err: fmt.Errorf("%s: %w", name, ErrEncoding)}
	}
	return NewDeclared(name, declared, content, mostText)
}

// NewDeclared returns a file that a client has sent with a media type, which may be "". The content decides what it is,
// and must not contradict that type.
func NewDeclared(name, declared string, content []byte, mostText int) (File, error) {
	declared = strings.ToLower(declared)
	kind := Sniff(content)
	if isMediaType(declared) && kind == "" {
		return File{}, failure.NewUsage(advice, "%s was sent as %s, and its content is something else", name, cutType(declared))
	}
	if kind != "" && declared != "" && !isMediaType(declared) && !isUntyped(declared) {
		return File{}, failure.NewUsage("send it as "+kind, "%s was sent as %s, and its content is %s", name, cutType(declared), kind)
	}
	if kind == "" && len(content) > mostText {
		return File{}, newTooLarge(name, len(content), mostText)
	}
	return New(name, content)
}

// ErrEncoding is for content that is not in base64, for [errors.Is].
var ErrEncoding = errors.New("expected the content of the file in base64")

// Explain returns the text of an error with what to do, for a protocol that has one text for both.
func Explain(err error) string {
	if e, ok := errors.AsType[*failure.Error](err); ok && e.Next != "" {
		return e.Error() + ": " + e.Next
	}
	return err.Error()
}

// DecodedSize returns how many bytes a text in base64 has when it is decoded.
func DecodedSize(data string) int {
	return base64.StdEncoding.DecodedLen(len(data)) - strings.Count(data[max(0, len(data)-2):], "=")
}

// isMediaType reports whether a media type is that of pictures or of documents. SVG is text.
func isMediaType(declared string) bool {
	return strings.HasPrefix(declared, "image/") && declared != "image/svg+xml" || declared == PDF
}

// isUntyped reports whether a media type says nothing about the content.
func isUntyped(declared string) bool { return declared == "application/octet-stream" }

// cutType returns the media type of a client as an error may show it.
func cutType(declared string) string { return wording.CutText(fmt.Sprintf("%q", declared), 60, "…") }

// NewDataURL returns a file that a client has sent as a data: address. An address of another scheme is an error:
// nothing is fetched for a client.
func NewDataURL(name, address string) (File, error) {
	rest, ok := strings.CutPrefix(address, "data:")
	if !ok {
		return File{}, failure.NewUsage("send its content as a data: address", "%s is an address, and nothing is fetched for a client", name)
	}
	head, data, ok := strings.Cut(rest, ",")
	declared, coded := strings.CutSuffix(head, ";base64")
	if !ok || !coded || strings.Contains(data, "%") {
		return File{}, failure.NewUsage("write: data:image/png;base64,DATA", "%s is no data: address in base64", name)
	}
	declared, _, _ = strings.Cut(declared, ";")
	if declared == "" {
		declared = "application/octet-stream"
	}
	return NewBase64(name, declared, data, MaxText)
}

// IsAddress reports whether a name is an address of the web instead of a path.
func IsAddress(name string) bool {
	u, err := url.Parse(name)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// Join returns a prompt with files: the texts with their names, and the pictures and documents as parts of the message,
// in the order in which the prompt names them. If the prompt is only one text, it is that text.
func Join(prompt string, files []File) (text string, media []llm.Part, err error) {
	var parts []string
	if prompt != "" {
		parts = append(parts, prompt)
	}
	for _, f := range files {
		text := f.Mention()
		if f.Media != nil {
			media = append(media, f.Media)
		} else if prompt == "" && len(files) == 1 {
			text = strings.TrimRight(f.Text, "\r\n")
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n"), media, CheckMedia(media)
}

// StandardInput is the name of a file that came through standard input.
const StandardInput = "standard input"

// Mention returns what a prompt says of the file: its name and its text, or that it is attached.
func (f File) Mention() string {
	name := "File " + filepath.ToSlash(f.Name)
	if f.Name == StandardInput {
		name = "Standard input"
	}
	if f.Media != nil {
		return name + " is attached."
	}
	return name + ":\n" + strings.TrimRight(f.Text, "\r\n")
}

// CheckMedia returns an error for pictures and documents that are too many or too large for one message.
func CheckMedia(media []llm.Part) error {
	if len(media) > MaxCount {
		return failure.NewUsage("send them in several messages", "a message has %d pictures and documents, and may have %d", len(media), MaxCount)
	}
	all := 0
	for _, p := range media {
		all += Describe(p).Bytes
	}
	if all > MaxMessage {
		return failure.NewUsage("make them smaller, or send them in several messages", "the pictures and documents of a message have %s together, and may have %s", wording.FormatBytes(all), wording.FormatBytes(MaxMessage))
	}
	return nil
}

// BytesOf returns the bytes of a picture or a document, nil for one that is given by its address.
func BytesOf(p llm.Part) []byte {
	switch p := p.(type) {
	case llm.Image:
		return p.Data
	case llm.File:
		return p.Data
	}
	return nil
}

// Describe returns what a part is, without its bytes; the zero Attachment for a part that is neither a picture nor a
// document.
func Describe(p llm.Part) Attachment {
	switch p := p.(type) {
	case llm.Image:
		return Attachment{MIME: p.MIME, Bytes: len(p.Data)}
	case llm.File:
		return Attachment{Name: p.Name, MIME: p.MIME, Bytes: len(p.Data)}
	}
	return Attachment{}
}

// DescribeFiles returns what the pictures and documents among files are.
func DescribeFiles(files []File) (list []Attachment) {
	for _, f := range files {
		if f.Media != nil {
			info := Describe(f.Media)
			info.Name = f.Name
			list = append(list, info)
		}
	}
	return list
}

// String returns the line of a file for people: name, size and, if it says more, the path.
func (f File) String() string {
	base := baseName(f.Name)
	size := len(f.Text)
	if f.Media != nil {
		size = Describe(f.Media).Bytes
	}
	line := base + " · " + wording.FormatBytes(size)
	if base != filepath.ToSlash(f.Name) {
		line += " · " + f.Name
	}
	return line
}

// errNotMedia is for an extension that a media type does not have.
var errNotMedia = errors.New("no such media type")

// Extension returns how the name of a file with a media type ends, such as ".png".
func Extension(mime string) (string, error) {
	switch mime {
	case "image/png":
		return ".png", nil
	case "image/jpeg":
		return ".jpg", nil
	case "image/gif":
		return ".gif", nil
	case "image/webp":
		return ".webp", nil
	case PDF:
		return ".pdf", nil
	}
	return "", errNotMedia
}
