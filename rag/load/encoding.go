package load

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding/charmap"
)

// plainText decodes UTF-8, UTF-16 that begins with its mark, and Latin-1. If it had to guess or replace bytes, note
// says so. It refuses all other encodings.
func plainText(data []byte) (text, note string, err error) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return withoutReturns(utf16Text(data)), "", nil
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if bytes.IndexByte(data[:min(len(data), 8000)], 0) >= 0 {
		return "", "", errBinary
	}
	if !utf8.Valid(data) {
		if text, note, err = guessText(data); err != nil {
			return "", "", err
		}
		return withoutReturns(text), note, nil
	}
	// data is never changed, and a copy would double the memory
	return withoutReturns(unsafe.String(unsafe.SliceData(data), len(data))), "", nil
}

func withoutReturns(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// utf16Text decodes UTF-16 with its mark.
func utf16Text(data []byte) string {
	low := 0
	high := 1
	if data[0] == 0xfe {
		low = 1
		high = 0
	}
	var b strings.Builder
	b.Grow(len(data) / 2)
	unit := func(i int) rune { return rune(data[i+low]) | rune(data[i+high])<<8 }
	for i := 2; i+1 < len(data); i += 2 {
		r := unit(i)
		if utf16.IsSurrogate(r) && i+3 < len(data) {
			if r = utf16.DecodeRune(r, unit(i+2)); r != utf8.RuneError {
				i += 2
			}
		}
		b.WriteRune(r) // of half a pair, the replacement character
	}
	return b.String()
}

// guessText decodes text that is not valid UTF-8. Text with more valid than invalid characters beyond ASCII is UTF-8
// with single bad bytes. Text that is mostly ASCII is Windows-1252, which holds Latin-1.
func guessText(data []byte) (text, note string, err error) {
	valid := 0
	invalid := 0
	controls := 0
	line := 1
	first := 0
	var bad byte
	for at := 0; at < len(data); {
		r, size := utf8.DecodeRune(data[at:])
		switch {
		case r == utf8.RuneError && size == 1:
			if invalid++; invalid == 1 {
				bad = data[at]
				first = line
			}
		case size > 1:
			valid++
		case r == '\n':
			line++
		case r < ' ' && r != '\t' && r != '\r' && r != '\f' && r != 0x1b || r == 0x7f:
			controls++
		}
		at += size
	}
	const (
		maxControls = 20 // text may have one control character in so many bytes
		maxForeign  = 3  // text in a western language has at most one byte beyond ASCII in so many
	)
	switch {
	case controls > len(data)/maxControls:
		return "", "", errBinary
	case valid > invalid:
		return strings.ToValidUTF8(string(data), "\ufffd"), fmt.Sprintf("not valid UTF-8: %d bytes, the first of them 0x%02x in line %d, "+
			"are read as \ufffd", invalid, bad, first), nil
	case invalid <= max(1, len(data)/maxForeign):
		decoded, err := charmap.Windows1252.NewDecoder().Bytes(data)
		return string(decoded), fmt.Sprintf("not valid UTF-8 (byte 0x%02x in line %d), so it is read as Latin-1; "+
			"save it as UTF-8 if its letters come out wrong", bad, first), err
	}
	return "", "", fmt.Errorf("not valid UTF-8: byte 0x%02x in line %d, nor Latin-1; save it as UTF-8", bad, first)
}

// pageSource decodes a page. If it is not valid UTF-8, the encoding that the page names applies.
func pageSource(data []byte) (page, note string, err error) {
	if !utf8.Valid(data) && bytes.IndexByte(data[:min(len(data), 1024)], 0) < 0 {
		e, name, _ := charset.DetermineEncoding(data[:min(len(data), 1024)], "")
		if name != "utf-8" && name != "windows-1252" {
			decoded, err := e.NewDecoder().Bytes(data)
			if err != nil {
				return "", "", errors.Join(fmt.Errorf("not valid %s", name), err)
			}
			return string(decoded), "", nil
		}
	}
	return plainText(data)
}
