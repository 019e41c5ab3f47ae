package redact

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// A Set is a set of secret values, and removes them from texts. The nil Set and
// the zero value are empty. It is safe for concurrent use.
type Set struct {
	mu sync.Mutex
	// false if only the encodings are searched for: the value is a text with a secret in it
	values map[string]bool
	built  atomic.Pointer[matcher] // nil if it must be built from the values
}

// New returns a Set of values that are known to be secrets. It accepts the same
// values as [Set.Add].
func New(values ...string) *Set {
	s := &Set{}
	s.Add(values...)
	return s
}

// Add adds values that are known to be secrets. It ignores values of less than 6 bytes
// and a few common words: they would match texts that have nothing to do with them.
func (s *Set) Add(values ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range values {
		s.add(v, true)
	}
}

// add adds a value. The caller must hold mu.
func (s *Set) add(value string, raw bool) {
	if was, known := s.values[value]; !IsFindable(value) || known && (was || !raw) {
		return
	}
	if s.values == nil {
		s.values = map[string]bool{}
	}
	s.values[value] = raw
	s.built.Store(nil)
}

// AddNamed adds the secrets in a variable: its value, if [IsSecretName] accepts the name and [IsSecretValue] the value
// and it names no file, and the passwords that [FindPasswords] finds in it. A value with passwords in it is also
// searched for in base64, which hides the passwords.
func (s *Set) AddNamed(name, value string) {
	if isNamedSecret(name, value) {
		s.Add(value)
		s.Add(decodedBase64(name, value)...)
	}
	if found := FindPasswords(value); len(found) > 0 {
		s.Add(found...)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.add(value, false)
	}
}

// HasSecret reports whether a variable holds a secret, by its name or by what its value looks like: whether
// [Set.AddNamed] would add something.
func HasSecret(name, value string) bool {
	return isNamedSecret(name, value) || len(FindPasswords(value)) > 0
}

// loadMatcher returns the matcher of the values, or nil if there are no values.
func (s *Set) loadMatcher() *matcher {
	if s == nil {
		return nil
	}
	if m := s.built.Load(); m != nil {
		return m
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.values) == 0 {
		return nil
	}
	m := s.built.Load()
	if m == nil {
		var patterns []string
		for _, v := range slices.Sorted(maps.Keys(s.values)) {
			if s.values[v] {
				patterns = append(patterns, secretForms(v)...)
			} else {
				patterns = append(patterns, listEncodings(v)...)
			}
		}
		m = newMatcher(patterns)
		s.built.Store(m)
	}
	return m
}

// findAll returns the spans of the text that are secrets, in order, and the offset
// from which the text may belong to a secret when more text follows.
func (m *matcher) findAll(text string) (found []span, pending int) {
	all := buildViews(text)
	pending = len(text)
	for _, v := range all {
		spans, from := m.findPatterns(v.text, v.tail)
		for _, s := range spans {
			found = append(found, v.originSpan(s))
		}
		pending = min(pending, v.originSpan(span{from, from}).from)
	}
	found = mergeSpans(found)
	for moved := true; moved; {
		was := pending
		for _, v := range all {
			pending = v.escapeBoundary(pending)
		}
		for _, s := range found {
			if s.from < pending && pending < s.to {
				pending = s.from
			}
		}
		moved = pending != was
	}
	return found, pending
}

// mergeSpans sorts spans and joins those that overlap.
func mergeSpans(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	var list []span
	for _, s := range spans {
		if n := len(list); n > 0 && s.from < list[n-1].to {
			list[n-1].to = max(list[n-1].to, s.to)
			continue
		}
		list = append(list, s)
	}
	return list
}

// Text returns the text with every secret replaced by [Mask]. A JSON document
// stays a JSON document.
func (s *Set) Text(text string) string {
	m := s.loadMatcher()
	if m == nil || text == "" {
		return text
	}
	found, _ := m.findAll(text)
	if len(found) == 0 {
		return text
	}
	if isDocument(text) {
		if out := replaceSpans(text, maskJSONSpans(text, found)); json.Valid([]byte(out)) {
			return out
		}
	}
	masks := make([]replacement, len(found))
	for i, f := range found {
		masks[i] = replacement{f, Mask}
	}
	return replaceSpans(text, masks)
}

// Bytes does the same as Text for bytes. It returns data itself if it holds no secret.
func (s *Set) Bytes(data []byte) []byte {
	if s.loadMatcher() == nil {
		return data
	}
	text := string(data)
	if out := s.Text(text); out != text {
		return []byte(out)
	}
	return data
}

// Hold returns the number of bytes at the end of the text that may belong to a
// secret that is complete only when more text follows.
func (s *Set) Hold(text string) int {
	m := s.loadMatcher()
	if m == nil {
		return 0
	}
	_, pending := m.findAll(text)
	return len(text) - pending
}

// A replacement is a span and the text that replaces it.
type replacement struct {
	span
	by string
}

func replaceSpans(text string, masks []replacement) string {
	var b strings.Builder
	b.Grow(len(text))
	at := 0
	for _, m := range masks {
		b.WriteString(text[at:m.from])
		b.WriteString(m.by)
		at = m.to
	}
	b.WriteString(text[at:])
	return b.String()
}

// isDocument reports whether a text is a JSON object or array.
func isDocument(text string) bool {
	text = strings.TrimLeft(text, " \t\r\n")
	return (strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")) && json.Valid([]byte(text))
}

// maskJSONSpans returns the replacements in a JSON document, so that it stays one: the
// mask for a span inside a string, and a string for any other span, together with
// the number that it is a part of.
func maskJSONSpans(text string, spans []span) []replacement {
	var list []replacement
	scalars := scanJSON(text)
	for _, s := range spans {
		i, _ := slices.BinarySearchFunc(scalars, s.from, func(t span, at int) int { return cmp.Compare(t.to, at+1) })
		if i < len(scalars) && scalars[i].from <= s.from && s.to <= scalars[i].to {
			if t := scalars[i]; text[t.from] == '"' && t.from < s.from && s.to < t.to {
				list = append(list, replacement{s, Mask})
				continue
			}
			s = scalars[i]
		}
		if n := len(list); n > 0 && list[n-1].to >= s.to {
			continue // two spans in one number
		}
		list = append(list, replacement{s, `"` + Mask + `"`})
	}
	return list
}

// scanJSON returns the strings, with their quotes, and the numbers of a valid
// JSON document.
func scanJSON(text string) (list []span) {
	for at := 0; at < len(text); at++ {
		from := at
		switch c := text[at]; {
		case c == '"':
			for at++; text[at] != '"'; at++ {
				if text[at] == '\\' {
					at++
				}
			}
			list = append(list, span{from, at + 1})
		case c == '-' || c >= '0' && c <= '9':
			for at+1 < len(text) && strings.IndexByte("+-.eE0123456789", text[at+1]) >= 0 {
				at++
			}
			list = append(list, span{from, at + 1})
		}
	}
	return list
}

// RedactJSON applies a redactor of texts to every string, name and number of a JSON
// document, and to the document as a text. The result is a JSON document; a text that
// is not valid JSON becomes a string.
func RedactJSON(raw json.RawMessage, text func(string) string) json.RawMessage {
	if !json.Valid(raw) {
		return encodeJSONString(text(string(raw)))
	}
	doc := string(raw)
	var list []replacement
	for _, s := range scanJSON(doc) {
		was := doc[s.from:s.to]
		if was[0] == '"' && json.Unmarshal([]byte(was), &was) != nil {
			continue
		}
		if is := text(was); is != was {
			list = append(list, replacement{s, string(encodeJSONString(is))})
		}
	}
	out := doc
	if len(list) > 0 {
		out = replaceSpans(doc, list)
	}
	if whole := text(out); whole != out {
		if !json.Valid([]byte(whole)) {
			return encodeJSONString(whole)
		}
		out = whole
	}
	if out == doc {
		return raw
	}
	return json.RawMessage(out)
}

// encodeJSONString returns a text as a JSON string.
func encodeJSONString(text string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(text) != nil {
		return json.RawMessage(`""`) // cannot happen: every string can be encoded
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
