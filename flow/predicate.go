package flow

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// predicate is a parsed validation of an input node: len(input) OP N, where
// the length counts bytes of UTF-8.
type predicate struct {
	op    string
	limit uint64
}

// operators are the comparisons, the longer ones before their prefixes.
var operators = []string{">=", "<=", "==", ">", "<"}

// parsePredicate reads a validation expression.
func parsePredicate(expr string) (predicate, error) {
	expr = strings.TrimSpace(expr)
	rest, ok := strings.CutPrefix(expr, "len(input)")
	if !ok {
		return predicate{}, failf("Unsupported validation expression '%s'; only `len(input) OP N` is supported", expr)
	}
	rest = strings.TrimSpace(rest)
	for _, op := range operators {
		right, ok := strings.CutPrefix(rest, op)
		if !ok {
			continue
		}
		limit, err := strconv.ParseUint(strings.TrimPrefix(strings.TrimSpace(right), "+"), 10, 64)
		if err != nil {
			return predicate{}, failf("Invalid right-hand side in validation '%s': %w", expr, err)
		}
		return predicate{op, limit}, nil
	}
	return predicate{}, failf("No comparison operator in validation expression '%s'", expr)
}

// isSatisfiedBy reports whether a text of n bytes satisfies the predicate.
func (p predicate) isSatisfiedBy(n uint64) bool {
	switch p.op {
	case ">=":
		return n >= p.limit
	case "<=":
		return n <= p.limit
	case "==":
		return n == p.limit
	case ">":
		return n > p.limit
	}
	return n < p.limit
}

// validateInput checks a person's answer against the validation expression of
// an input node, which may be empty.
func validateInput(expr, input string) error {
	if expr == "" {
		return nil
	}
	p, err := parsePredicate(expr)
	if err != nil {
		return err
	}
	if !p.isSatisfiedBy(uint64(len(input))) {
		return failf("Input failed validation '%s' (got %d chars)", expr, utf8.RuneCountInString(input))
	}
	return nil
}
