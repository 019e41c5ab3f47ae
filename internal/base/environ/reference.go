package environ

import (
	"strings"

	"raddle.dev/internal/base/pattern"
)

// reference matches ${NAME} and {{NAME}}, with blanks around the name.
var reference = pattern.CompileLater(`\$\{[ \t]*([A-Za-z_][A-Za-z0-9_]*)[ \t]*\}|\{\{[ \t]*([A-Za-z_][A-Za-z0-9_.-]*)[ \t]*\}\}`)

// A Reference names a variable in a place of a file.
type Reference struct {
	Name   string
	Secret bool // it is written as {{NAME}}, which names a secret
}

func newReference(text string) Reference {
	match := reference().FindStringSubmatch(text)
	return Reference{Name: match[1] + match[2], Secret: match[2] != ""}
}

// ParseReference returns the reference that a text consists of. ok is false for any other text.
func ParseReference(text string) (r Reference, ok bool) {
	text = strings.TrimSpace(text)
	if reference().FindString(text) != text || text == "" {
		return Reference{}, false
	}
	return newReference(text), true
}

// HasReference reports whether there is a reference in a text.
func HasReference(text string) bool { return reference().MatchString(text) }

// ReplaceReferences returns a text with what value returns for each reference in it.
func ReplaceReferences(text string, value func(Reference) string) string {
	return reference().ReplaceAllStringFunc(text, func(found string) string { return value(newReference(found)) })
}
