package strictyaml

// FindEndOfQuotes returns the index after the quote that closes the one at an index of a text of YAML: a single quote
// that is doubled, and a double one behind a backslash, close nothing. Without one it returns the length of the text,
// and closed is false.
func FindEndOfQuotes[T string | []byte](text T, from int) (end int, closed bool) {
	quote := text[from]
	for i := from + 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && quote == '"':
			i++
		case text[i] == quote && quote == '\'' && i+1 < len(text) && text[i+1] == quote:
			i++
		case text[i] == quote:
			return i + 1, true
		}
	}
	return len(text), false
}
