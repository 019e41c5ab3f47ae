package load

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"path/filepath"
	"strings"

	"golang.org/x/net/html/charset"
)

// mailReader is part of the hash of messages: a change of it makes the next build read them again.
const mailReader = "\x00eml 1"

// The limits of a message.
const (
	maxMailDepth = 8   // of parts inside of parts
	maxMailParts = 200 // in all
)

// errNoMail is the error of a file that holds something else than a message.
var errNoMail = errors.New("not a message as mail programs save it (RFC 5322): save it again, or leave it out")

// asMail reads a message as Markdown: its subject, who wrote it to whom and when, its text, and its attachments as far
// as there are readers for them.
func (f *File) asMail(ctx context.Context, doc *Document) error {
	r := mailText{file: f, ctx: ctx}
	if err := r.addMessage(f.data, 0); err != nil {
		return err
	}
	doc.Ext = "md"
	doc.Text = r.out.String()
	doc.Warning = r.warning
	return nil
}

// boxReader is part of the hash of mailboxes: a change of it makes the next build read them again.
const boxReader = "\x00mbox 1"

// asMailbox reads the messages of a mailbox in the format mbox, one after the other.
func (f *File) asMailbox(ctx context.Context, doc *Document) error {
	if !bytes.HasPrefix(f.data, []byte("From ")) {
		return errors.New("not a mailbox in the format mbox, which begins with a line `From `: export it again, or leave it out")
	}
	box := mailText{file: f, ctx: ctx}
	n := 0
	for message := range eachMessage(f.data) {
		n++
		r := mailText{file: f, ctx: ctx}
		switch err := r.addMessage(message, 0); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			box.warn(fmt.Sprintf("message %d is left out: %v", n, err))
			continue
		case r.warning != "":
			box.warn(fmt.Sprintf("message %d: %s", n, r.warning))
		}
		doc.Marks = append(doc.Marks, Mark{At: box.out.Len(), Message: n})
		box.out.WriteString(strings.TrimLeft(r.out.String(), "\n") + "\n")
		if most := f.entry.o.maxBytes(); int64(box.out.Len()) > most {
			return tooLarge(int64(box.out.Len()), most)
		}
	}
	doc.Ext = "md"
	doc.Text = box.out.String()
	doc.Warning = box.warning
	return nil
}

// eachMessage yields the messages of a mailbox: what follows a line that begins with "From " at the start or after an
// empty line. Lines that were quoted because they begin so are as they were.
func eachMessage(box []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		var message []byte
		empty := true // the line before
		began := false
		for line := range bytes.Lines(box) {
			if empty && bytes.HasPrefix(line, []byte("From ")) {
				if began && !yield(message) {
					return
				}
				message = nil
				began = true
				empty = false
				continue
			}
			if unquoted := bytes.TrimLeft(line, ">"); len(unquoted) < len(line) && bytes.HasPrefix(unquoted, []byte("From ")) {
				line = line[1:]
			}
			message = append(message, line...)
			empty = len(bytes.TrimRight(line, "\r\n")) == 0
		}
		if began {
			yield(message)
		}
	}
}

// addMessage adds a message: that of the file, or one inside of it.
func (r *mailText) addMessage(data []byte, depth int) error {
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil || len(m.Header) == 0 {
		return errNoMail
	}
	words := mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	for i, name := range []string{"Subject", "From", "To", "Cc", "Date"} {
		value := m.Header.Get(name)
		if text, err := words.DecodeHeader(value); err == nil {
			value = text
		}
		value = strings.Join(strings.Fields(value), " ")
		switch {
		case value == "":
		case i == 0:
			r.out.WriteString("# " + value + "\n\n")
		default:
			r.out.WriteString(name + ": " + value + "\n")
		}
	}
	r.out.WriteString("\n")
	return r.addPart(mailPart{header: m.Header, body: m.Body}, depth)
}

// A mailText collects the text of a message.
type mailText struct {
	file    *File
	ctx     context.Context
	out     strings.Builder
	parts   int
	warning string
}

// A mailPart is a message, or a part of one.
type mailPart struct {
	header interface{ Get(name string) string }
	body   io.Reader
}

// addPart adds a part. What cannot be read is left out, with a warning.
func (r *mailText) addPart(p mailPart, depth int) error {
	if r.parts++; r.parts > maxMailParts || depth > maxMailDepth {
		return fmt.Errorf("more than %d parts, or parts inside of parts %d times: leave it out", maxMailParts, maxMailDepth)
	}
	kind, params, err := mime.ParseMediaType(p.header.Get("Content-Type"))
	if err != nil && kind == "" {
		kind = "text/plain"
	}
	if strings.HasPrefix(kind, "multipart/") && params["boundary"] != "" {
		return r.addParts(kind, multipart.NewReader(p.body, params["boundary"]), depth)
	}
	most := r.file.entry.o.maxBytes()
	body, err := io.ReadAll(io.LimitReader(decodeTransfer(p), most+1))
	if err != nil { // what came before is text all the same
		r.warn("a part is cut off or damaged: " + err.Error())
	}
	if int64(len(body)) > most {
		return tooLarge(int64(len(body)), most)
	}
	_, disposition, _ := mime.ParseMediaType(p.header.Get("Content-Disposition"))
	name := decodeName(disposition["filename"])
	if name == "" {
		name = decodeName(params["name"])
	}
	switch {
	case name != "":
		return r.addAttachment(name, body, depth)
	case kind == "message/rfc822":
		return r.addAttachment("message.eml", body, depth)
	case kind == "text/html":
		return r.addText("html", decodeCharset(body, params["charset"]))
	case strings.HasPrefix(kind, "text/"):
		return r.addText("txt", decodeCharset(body, params["charset"]))
	}
	return nil // a picture in the text
}

// addParts adds the parts of a part. Of alternatives it takes the first one that is text, which is the plain one.
func (r *mailText) addParts(kind string, parts *multipart.Reader, depth int) error {
	for {
		p, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			r.warn("it is cut off: " + err.Error())
			return nil
		}
		before := r.out.Len()
		if err := r.addPart(mailPart{header: p.Header, body: p}, depth+1); err != nil {
			return err
		}
		if kind == "multipart/alternative" && r.out.Len() > before {
			return nil
		}
	}
}

// addAttachment adds what a reader makes of an attachment, under its name. The names of others are enough.
func (r *mailText) addAttachment(name string, body []byte, depth int) error {
	ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(name), "."))
	r.out.WriteString("\n## " + strings.Join(strings.Fields(name), " ") + "\n\n")
	if ext != "eml" {
		return r.addText(ext, body)
	}
	err := r.addMessage(body, depth+1)
	if errors.Is(err, errNoMail) {
		r.warn("a message inside of it cannot be read")
		return nil
	}
	return err
}

// addText adds the text that the reader of an extension makes of a body.
func (r *mailText) addText(ext string, body []byte) error {
	inner := *r.file
	inner.entry.ext = ext
	inner.entry.local = false // the file is the message
	inner.data = body
	doc, err := inner.readText(r.ctx)
	if r.ctx.Err() != nil {
		return r.ctx.Err()
	}
	if err != nil {
		r.warn("an attachment (" + ext + ") is left out: " + err.Error())
		return nil
	}
	if r.out.WriteString(strings.TrimSpace(doc.Text) + "\n"); int64(r.out.Len()) > r.file.entry.o.maxBytes() {
		return tooLarge(int64(r.out.Len()), r.file.entry.o.maxBytes())
	}
	r.warning = joinNotes(r.warning, doc.Warning)
	return nil
}

// warn adds a warning, if there are not many.
func (r *mailText) warn(text string) {
	const most = 500 // bytes
	if len(r.warning) < most {
		r.warning = joinNotes(r.warning, text)
	}
}

// decodeTransfer returns the body of a part as it was before it was sent.
func decodeTransfer(p mailPart) io.Reader {
	switch strings.ToLower(strings.TrimSpace(p.header.Get("Content-Transfer-Encoding"))) {
	case "quoted-printable":
		return quotedprintable.NewReader(p.body)
	case "base64":
		return base64.NewDecoder(base64.StdEncoding, p.body)
	}
	return p.body
}

// decodeName returns the name of a file, which may be an encoded word.
func decodeName(name string) string {
	words := mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	if text, err := words.DecodeHeader(name); err == nil {
		return text
	}
	return name
}

// decodeCharset returns a text of a charset as UTF-8. One whose charset is not known stays as it is.
func decodeCharset(body []byte, label string) []byte {
	r, err := charset.NewReaderLabel(label, bytes.NewReader(body))
	if label == "" || err != nil {
		return body
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return body
	}
	return text
}
