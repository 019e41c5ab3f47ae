package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"raddle.dev/internal/base/pattern"
)

// longPart is the length in bytes from which a line or an item of a value is a
// secret on its own: shorter ones may be words that occur everywhere.
const longPart = 16

// secretForms returns the texts to search for if value is a secret. Escapes are not
// among them: escapes are resolved before a text is searched.
func secretForms(value string) []string {
	texts := []string{value}
	add := func(list ...string) {
		for _, t := range list {
			if len(t) >= shortest && !slices.Contains(texts, t) {
				texts = append(texts, t)
			}
		}
	}
	if !utf8.ValidString(value) {
		add(strings.ToValidUTF8(value, string(utf8.RuneError)))
	}
	add(strings.TrimSpace(value))
	whole := slices.Clone(texts)
	for _, t := range slices.Clone(texts) {
		lines := strings.ReplaceAll(t, "\r\n", "\n")
		if !strings.ContainsAny(lines, "\r\n") {
			continue
		}
		lines = strings.ReplaceAll(lines, "\r", "\n")
		whole = append(whole, lines)
		add(lines, strings.ReplaceAll(lines, "\n", "\r\n"), strings.ReplaceAll(lines, "\n", " "), strings.ReplaceAll(lines, "\n", ""))
	}
	add(strings.Join(strings.Fields(value), " "))
	if strings.ContainsFunc(value, unicode.IsControl) { // as terminals receive it
		plain := escapeSequence().ReplaceAllString(value, "")
		for _, t := range []string{plain, dropControls(plain), dropControls(value)} {
			add(t, strings.TrimSpace(t), strings.Join(strings.Fields(t), " "))
		}
	}
	secrets, documents := fromJSON(value)
	add(secrets...)
	add(documents...)
	if documents == nil {
		add(secretParts(value)...)
	}
	for _, t := range whole {
		add(listEncodings(t)...)
	}
	for _, t := range texts {
		if strings.Contains(t, " ") {
			add(strings.ReplaceAll(t, " ", "+")) // in a query
		}
	}
	return texts
}

// escapeSequence matches what moves the cursor or sets colours in a terminal.
var escapeSequence = pattern.CompileLater(`\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)|[@-Z\\^_])`)

// dropControls returns a text without control characters other than white space.
func dropControls(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !unicode.IsSpace(r) {
			return -1
		}
		return r
	}, text)
}

// secretParts returns the lines and items of a value that are secret on their own.
func secretParts(value string) (list []string) {
	for _, p := range strings.FieldsFunc(value, func(r rune) bool { return strings.ContainsRune("\r\n,;", r) }) {
		p = strings.TrimSpace(p)
		if len(p) >= longPart && p != strings.TrimSpace(value) && !strings.HasPrefix(p, "-----") {
			list = append(list, p)
		}
	}
	return list
}

// listEncodings returns the encodings of a value in base64, also with a line break
// after it.
func listEncodings(value string) []string {
	return append(inBase64(value), inBase64(value+"\n")...)
}

// inBase64 returns the encodings of a value, on one line and on several.
func inBase64(value string) (list []string) {
	data := []byte(value)
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		text := e.EncodeToString(data)
		list = append(list, text)
		for _, width := range []int{64, 76} {
			if len(text) > width {
				list = append(list, wrapLines(text, width))
			}
		}
	}
	return list
}

// wrapLines cuts a text into lines of a given length.
func wrapLines(text string, width int) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width] + "\n")
		text = text[width:]
	}
	b.WriteString(text)
	return b.String()
}

// fromJSON returns the strings in value that are secrets, and the other ways to
// write the document, if value is a JSON object or array.
func fromJSON(value string) (secrets, documents []string) {
	var v any
	if !isDocument(value) || json.Unmarshal([]byte(value), &v) != nil {
		return nil, nil
	}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, member := range v {
				walk(k, member)
			}
		case []any:
			for _, item := range v {
				walk(name, item)
			}
		case string:
			if isNamedSecret(name, v) || name == "" && len(v) >= longPart && IsSecretValue(v) {
				secrets = append(secrets, v)
				secrets = append(secrets, secretParts(v)...)
			}
		}
	}
	walk("", v)
	slices.Sort(secrets)
	var compact bytes.Buffer
	if json.Compact(&compact, []byte(value)) == nil {
		documents = append(documents, compact.String(), spaceSeparators(compact.String()))
	}
	for _, indent := range []string{"  ", "    ", "\t"} {
		var b bytes.Buffer
		if json.Indent(&b, []byte(value), "", indent) == nil {
			documents = append(documents, b.String())
		}
	}
	if sorted, err := json.Marshal(v); err == nil {
		documents = append(documents, string(sorted), spaceSeparators(string(sorted)))
	}
	return slices.Compact(secrets), documents
}

// spaceSeparators puts a space after each comma and colon of a compact document, as
// Python writes JSON.
func spaceSeparators(compact string) string {
	var b strings.Builder
	inText := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		b.WriteByte(c)
		switch {
		case inText && c == '\\':
			i++
			b.WriteByte(compact[i])
		case c == '"':
			inText = !inText
		case !inText && (c == ',' || c == ':'):
			b.WriteByte(' ')
		}
	}
	return b.String()
}

// decodedBase64 returns the decoded value of a variable with a name such as KEY_B64.
func decodedBase64(name, value string) []string {
	if !base64Name().MatchString(name) {
		return nil
	}
	text := strings.Map(func(r rune) rune {
		switch r {
		case '\n', '\r', ' ', '=':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, value)
	data, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil {
		return nil
	}
	return []string{string(data)}
}
