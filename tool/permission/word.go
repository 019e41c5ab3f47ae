package permission

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// A word holds what is known about a word of a command before the shell runs.
type word struct {
	text   string   // the text after the shell's expansion; the source if that is not known
	vague  bool     // only the shell will know the text
	splits bool     // the shell may expand it to any number of words, also none
	maybe  []string // of a word that is vague: texts that it may have, as far as they are known
	more   bool     // of a word that is vague: it may have too many texts
	// of a word that is vague: it has a wildcard outside of quotes, so that it may become names of files anywhere
	wild bool
	// of a word with * ? or [ outside of quotes: the pattern; the shell puts names of files in its place
	glob string
}

// isPlain reports whether the text of the word is certain.
func (w word) isPlain() bool { return !w.vague && !w.splits && w.glob == "" }

// literalWord returns a word whose text is certain.
func literalWord(text string) word { return word{text: text} }

// A wordReader turns one parsed word into a word.
// It collects the text, the pattern in which quoted characters are escaped, and what is outside of
// quotes.
type wordReader struct {
	text, glob, unquoted strings.Builder
	w                    word
	magic                bool // a character of a pattern of files is outside of quotes
}

// parseWord reads a parsed word. The source is used for parts that are not known, home is what ~
// means.
// Braces with a comma or two dots expand to several words, so such a word is not known.
func parseWord(n *syntax.Word, source, home string) word {
	var r wordReader
	for i, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			r.addUnquoted(part.Value, i == 0, home)
		case *syntax.SglQuoted:
			r.addQuoted(part.Value)
			r.w.vague = r.w.vague || part.Dollar && strings.Contains(part.Value, `\`)
		case *syntax.DblQuoted:
			r.addDoubleQuoted(part)
		case *syntax.ProcSubst:
			r.addQuoted("/dev/fd/63")
		default: // an expansion outside of quotes
			r.w.vague = true
			r.w.splits = true
		}
	}
	if u := r.unquoted.String(); strings.Contains(u, "{") && u != "{}" && (strings.Contains(u, ",") || strings.Contains(u, "..")) {
		r.w.vague = true
		r.w.splits = true
	}
	r.w.text = r.text.String()
	if r.w.vague {
		r.w.text = source
		r.w.wild = r.magic
	} else if r.magic {
		r.w.glob = r.glob.String()
	}
	return r.w
}

// addUnquoted adds text outside of quotes.
// A backslash quotes the next character, and one before a newline disappears with it. Only ~ at the
// beginning of the first part is the home directory; ~name is another user's, which is not known.
func (r *wordReader) addUnquoted(value string, first bool, home string) {
	if first && strings.HasPrefix(value, "~") {
		rest := value[1:]
		if home == "" || rest != "" && rest[0] != '/' {
			r.w.vague = true
		} else {
			r.addQuoted(home)
			value = rest
		}
	}
	for i := 0; i < len(value); i++ {
		c := value[i]
		if c == '\\' {
			if i++; i < len(value) && value[i] != '\n' {
				r.addQuoted(value[i : i+1])
			}
			continue
		}
		if c == '*' || c == '?' || c == ']' && strings.Contains(r.unquoted.String(), "[") {
			r.magic = true
		}
		r.text.WriteByte(c)
		r.glob.WriteByte(c)
		r.unquoted.WriteByte(c)
	}
}

// addQuoted adds text without special characters.
func (r *wordReader) addQuoted(value string) {
	r.text.WriteString(value)
	for i := range len(value) {
		if strings.IndexByte(`*?[]\{},`, value[i]) >= 0 {
			r.glob.WriteByte('\\')
		}
		r.glob.WriteByte(value[i])
	}
}

// addDoubleQuoted adds a part in double quotes. An expansion in it is one word whose text is not
// known, except for forms such as "$@", which are any number of words.
func (r *wordReader) addDoubleQuoted(n *syntax.DblQuoted) {
	r.w.vague = r.w.vague || n.Dollar
	for _, part := range n.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			r.addQuoted(unescapeDouble(part.Value))
		case *syntax.ParamExp:
			r.w.vague = true
			several := part.Param == nil || part.Param.Value == "@" || part.Index != nil || part.Excl || part.Names != 0
			r.w.splits = r.w.splits || several || part.Exp != nil || part.Repl != nil || part.Slice != nil
		default:
			r.w.vague = true
		}
	}
}

// unescapeDouble removes the backslashes that escape a character in double quotes.
func unescapeDouble(value string) string {
	if !strings.Contains(value, `\`) {
		return value
	}
	var b strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) && strings.IndexByte("$`\"\\\n", value[i+1]) >= 0 {
			if i++; value[i] == '\n' {
				continue
			}
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// joinWords joins words as a person would type them.
func joinWords(words []word) string {
	all := make([]string, len(words))
	for i, w := range words {
		if all[i] = w.text; w.isPlain() {
			all[i] = quoteWord(w.text)
		}
	}
	return strings.Join(all, " ")
}

// quoteWord writes a text as a word that the shell and the rules read as that text.
// A person sees it, and a rule that is remembered has it.
func quoteWord(text string) string {
	const safe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%^"
	if text != "" && strings.Trim(text, safe) == "" {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
