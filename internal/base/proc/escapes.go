package proc

import "bytes"

const esc = 0x1b

// StripEscapes returns text without terminal control sequences: colours and cursor moves (CSI), titles and links (OSC)
// and the other strings (DCS, SOS, PM, APC) whether ended by ST or BEL, two-byte escapes and lone ESC; also in their
// one-character forms U+0080 to U+009F, of which only the line break U+0085 stays. Of a sequence that is cut short only
// the introducer is removed, never the text after it. Other control characters stay. The result holds no ESC, and
// shares memory with text only if there was nothing to remove.
func StripEscapes(text []byte) []byte {
	i := nextControl(text)
	if i == len(text) {
		return text
	}
	out := make([]byte, 0, len(text))
	for {
		out = appendText(out, text[:i])
		text = text[i:]
		if len(text) == 0 {
			return out
		}
		text = text[sequenceLength(text):]
		i = nextControl(text)
	}
}

// nextControl returns the index of the first control that begins a sequence or is one, or len(text).
func nextControl(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] == esc || c1Control(text[i:]) != 0 {
			return i
		}
	}
	return len(text)
}

// c1Control returns the one-character control that text begins with, as the second byte of its ESC form, or 0. In UTF-8
// it is two bytes; a single byte of that value is part of another character.
func c1Control(text []byte) byte {
	if len(text) < 2 || text[0] != 0xc2 || text[1] < 0x80 || text[1] > 0x9f || text[1] == 0x85 {
		return 0
	}
	return text[1] - 0x40
}

// appendText appends text, except for bytes that would turn an incomplete character at the end of out into a control.
func appendText(out, text []byte) []byte {
	for len(out) > 0 && len(text) > 0 && c1Control([]byte{out[len(out)-1], text[0]}) != 0 {
		text = text[1:]
	}
	return append(out, text...)
}

// sequenceLength returns the length of the sequence that text begins with. Its first byte is ESC or that of a
// one-character control.
func sequenceLength(text []byte) int {
	n := 2
	kind := c1Control(text)
	if kind == 0 {
		n = 1
		if len(text) > 1 {
			kind = text[1]
		}
		switch {
		case kind >= 0x30 && kind <= 0x7e:
			n = 2
		case kind >= 0x20 && kind <= 0x2f:
			return n + finalByteLength(text[n:], 0x30)
		default:
			return n // a lone ESC
		}
	}
	switch kind {
	case '[':
		return n + csiLength(text[n:])
	case ']', 'P', 'X', '^', '_':
		return n + stringEnd(text[n:])
	}
	return n
}

// csiLength returns the length of what follows the introducer of a CSI: parameter bytes, then intermediate bytes and a
// final byte.
func csiLength(text []byte) int {
	n := 0
	for n < len(text) && text[n] >= 0x30 && text[n] <= 0x3f {
		n++
	}
	return n + finalByteLength(text[n:], 0x40)
}

// finalByteLength returns the length of intermediate bytes and a final byte, which is at least first.
func finalByteLength(text []byte, first byte) int {
	n := 0
	for n < len(text) && text[n] >= 0x20 && text[n] <= 0x2f {
		n++
	}
	if n < len(text) && text[n] >= first && text[n] <= 0x7e {
		n++
	}
	return n
}

// stringEnd returns the length of a control string with its terminator, or 0 if another control or the end of text
// comes first.
func stringEnd(text []byte) int {
	const bel, can, sub = 0x07, 0x18, 0x1a
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == bel:
			return i + 1
		case c == can || c == sub:
			return 0
		case c == esc:
			if bytes.HasPrefix(text[i:], []byte{esc, '\\'}) {
				return i + 2
			}
			return 0
		case c1Control(text[i:]) != 0:
			if c1Control(text[i:]) == '\\' {
				return i + 2
			}
			return 0
		}
	}
	return 0
}
