package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/runs"
)

// callsText lists calls of tools with their outcomes, oldest first, under the agent or node that made them if there are several. It leaves out
// calls that look into an empty inbox.
func callsText(calls []runs.ToolCall) string {
	calls = slices.DeleteFunc(slices.Clone(calls), isEmptyLook)
	var b strings.Builder
	if more := len(calls) - mostCalls; more > 0 {
		fmt.Fprintf(&b, "(%d before: --output json)\n", more)
		calls = calls[more:]
	}
	var makers []string
	for _, c := range calls {
		if !slices.Contains(makers, c.Path) {
			makers = append(makers, c.Path)
		}
	}
	for _, maker := range makers {
		margin, path := "", plainText(runs.PlainPath(maker))
		if len(makers) > 1 {
			fmt.Fprintf(&b, "%s\n", orElse(strings.TrimSuffix(path, "/"), "the lead"))
			margin, path = "  ", ""
		}
		for _, c := range calls {
			if c.Path == maker {
				b.WriteString(margin + path + callText(&c, margin))
			}
		}
	}
	return b.String()
}

// callText returns a call and, on a line after margin, its outcome.
func callText(c *runs.ToolCall, margin string) string {
	outcome := c.Status
	switch {
	case c.Outcome != "":
		outcome += ": " + shortenLine(c.Outcome)
	case c.Status == "begun":
		outcome += ": its outcome is not recorded"
	}
	return fmt.Sprintf("%s %s\n%s  %s\n", plainText(c.Tool), shortenLine(asWritten(string(c.Args))), margin, outcome)
}

// isEmptyLook reports whether a call has looked for messages and found none.
func isEmptyLook(c runs.ToolCall) bool {
	var box struct{ Messages *[]json.RawMessage }
	return c.Tool == "agent__check_inbox" && json.Unmarshal([]byte(c.Outcome), &box) == nil && box.Messages != nil && len(*box.Messages) == 0
}

// stateText returns a state for people: a line for each key, in the order of the state, without empty values.
func stateText(state json.RawMessage) string {
	d := json.NewDecoder(bytes.NewReader(state))
	if begin, err := d.Token(); err != nil || begin != json.Delim('{') {
		return string(state)
	}
	var b strings.Builder
	for d.More() {
		key, err := d.Token()
		var value json.RawMessage
		if err == nil {
			err = d.Decode(&value)
		}
		if err != nil {
			return string(state)
		}
		text := string(value)
		switch text {
		case "null", `""`, "[]", "{}":
			continue
		}
		var plain string
		if json.Unmarshal(value, &plain) != nil {
			plain = asWritten(text)
		}
		fmt.Fprintf(&b, "%s: %s\n", plainText(fmt.Sprint(key)), shortenLine(plain))
	}
	return b.String()
}
