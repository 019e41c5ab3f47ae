package flow

import (
	"fmt"
	"regexp"
	"strconv"

	"raddle.dev/flow/spec"
)

// failedValidation matches the fixed text of an answer that fails its
// validation.
var failedValidation = regexp.MustCompile(`^(?:at node '[^']*': )?Input failed validation '(.*)' \(got (\d+) chars\)$`)

// AnswerHeadline returns the reason why an answer is rejected in plain words
// for a person at a terminal. It returns an unknown reason unchanged.
func AnswerHeadline(reason string) string {
	found := failedValidation.FindStringSubmatch(reason)
	if found == nil {
		return reason
	}
	p, err := spec.ParsePredicate(found[1])
	got, _ := strconv.ParseUint(found[2], 10, 64) // an overflow is the largest number
	if err != nil {
		return reason
	}
	text := describeRequirement(p)
	if p.IsSatisfiedBy(got) { // the length counts bytes
		text += " Letters such as é count as two or more."
	}
	return text
}

// describeRequirement says what the predicate requires of a text that does not satisfy it.
func describeRequirement(p spec.Predicate) string {
	switch {
	case p.Op == ">" && p.Limit < ^uint64(0):
		return "Too short: at least " + formatCharacters(p.Limit+1) + "."
	case p.Op == ">=":
		return "Too short: at least " + formatCharacters(p.Limit) + "."
	case p.Op == "<" && p.Limit > 0:
		return "Too long: at most " + formatCharacters(p.Limit-1) + "."
	case p.Op == "<=":
		return "Too long: at most " + formatCharacters(p.Limit) + "."
	case p.Op == "==":
		return "Wrong length: exactly " + formatCharacters(p.Limit) + "."
	}
	return fmt.Sprintf("No answer can satisfy len(input) %s %d.", p.Op, p.Limit)
}

func formatCharacters(n uint64) string {
	if n == 1 {
		return "1 character"
	}
	return strconv.FormatUint(n, 10) + " characters"
}
