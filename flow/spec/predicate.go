package spec

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Predicate is a parsed validation of an input node: len(input) OP N, where
// the length counts bytes of UTF-8.
type Predicate struct {
	Op    string
	Limit uint64
}

// operators are the comparisons, the longer ones before their prefixes.
var operators = []string{">=", "<=", "==", ">", "<"}

// ParsePredicate reads a validation expression.
func ParsePredicate(expr string) (Predicate, error) {
	expr = strings.TrimSpace(expr)
	rest, ok := strings.CutPrefix(expr, "len(input)")
	if !ok {
		return Predicate{}, Errorf("Unsupported validation expression '%s'; only `len(input) OP N` is supported", expr)
	}
	rest = strings.TrimSpace(rest)
	for _, op := range operators {
		right, ok := strings.CutPrefix(rest, op)
		if !ok {
			continue
		}
		limit, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(right), "+"), 10, 64)
		if err != nil {
			return Predicate{}, Errorf("Invalid right-hand side in validation '%s': %w", expr, err)
		}
		return Predicate{op, limit}, nil
	}
	return Predicate{}, Errorf("No comparison operator in validation expression '%s'", expr)
}

// IsSatisfiedBy reports whether a text of n bytes satisfies the predicate.
func (p Predicate) IsSatisfiedBy(n uint64) bool {
	switch p.Op {
	case ">=":
		return n >= p.Limit
	case "<=":
		return n <= p.Limit
	case "==":
		return n == p.Limit
	case ">":
		return n > p.Limit
	}
	return n < p.Limit
}

// ValidateInput checks a person's answer against the validation expression of
// an input node, which may be empty.
func ValidateInput(expr, input string) error {
	if expr == "" {
		return nil
	}
	p, err := ParsePredicate(expr)
	if err != nil {
		return err
	}
	if !p.IsSatisfiedBy(uint64(len(input))) {
		return Errorf("Input failed validation '%s' (got %d chars)", expr, utf8.RuneCountInString(input))
	}
	return nil
}
