package builtin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A param is one argument that a tool takes.
type param struct {
	name     string
	alias    string // another accepted name, which models guess; empty: none
	number   bool   // a whole number
	flag     bool   // true or false; otherwise text
	required bool
	about    string
}

// argumentSchema returns the JSON Schema of arguments, with the properties in order.
func argumentSchema(params []param) json.RawMessage {
	var properties []string
	required := []string{}
	for _, p := range params {
		kind := "string"
		switch {
		case p.number:
			kind = "integer"
		case p.flag:
			kind = "boolean"
		}
		properties = append(properties, fmt.Sprintf("%s:{\"type\":%q,\"description\":%s}", jsonText(p.name), kind, jsonText(p.about)))
		if p.required {
			required = append(required, jsonText(p.name))
		}
	}
	return json.RawMessage(fmt.Sprintf(`{"type":"object","properties":{%s},"required":[%s]}`,
		strings.Join(properties, ","), strings.Join(required, ",")))
}

func jsonText(s string) string {
	text, _ := json.Marshal(s) // a text always has a JSON form
	return string(text)
}

// arguments are the values of a call, by the parameter's name.
type arguments map[string]string

// parseArguments reads the arguments of a call. A number may come as text, and the other
// way round: models do both.
func parseArguments(params []param, raw json.RawMessage) (arguments, error) {
	given := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, fmt.Errorf("the arguments are not a JSON object: %w", err)
		}
	}
	a := arguments{}
	for _, p := range params {
		value, ok := p.findValue(given)
		if !ok {
			if p.required {
				return nil, fmt.Errorf("the argument %s is missing", p.name)
			}
			continue
		}
		text, err := p.valueText(value)
		if err != nil {
			return nil, err
		}
		a[p.name] = text
	}
	return a, nil
}

// findValue returns the value under any of the names, and whether there is one. A null
// counts as a missing value.
func (p param) findValue(given map[string]json.RawMessage) (json.RawMessage, bool) {
	for _, name := range []string{p.name, p.alias, strings.ReplaceAll(p.name, "_", "-")} {
		if value, ok := given[name]; ok && name != "" && string(value) != "null" {
			return value, true
		}
	}
	return nil, false
}

func (p param) valueText(value json.RawMessage) (string, error) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		text = string(value)
	}
	if p.number {
		if _, err := strconv.Atoi(strings.TrimSpace(text)); err != nil {
			return "", fmt.Errorf("the argument %s must be a whole number, not %s", p.name, value)
		}
	}
	if p.flag && text != "true" && text != "false" {
		return "", fmt.Errorf("the argument %s must be true or false, not %s", p.name, value)
	}
	return text, nil
}

// intValue returns the value of a parameter, or otherwise if it is not a number.
func (a arguments) intValue(name string, otherwise int) int {
	n, err := strconv.Atoi(strings.TrimSpace(a[name]))
	if err != nil {
		return otherwise
	}
	return n
}

// clipOutput keeps the beginning and the end of a text that is too long.
func (h Host) clipOutput(text string) string {
	limit := h.outputLimit()
	if len(text) <= limit {
		return text
	}
	head := limit / 2
	tail := len(text) - limit/2
	for head > 0 && !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return fmt.Sprintf("%s\n... %d bytes left out ...\n%s", text[:head], tail-head, text[tail:])
}

// firstRunes cuts a text after a number of characters.
func firstRunes(text string, n int) (string, bool) {
	if len(text) <= n {
		return text, false
	}
	for i := range text {
		if n == 0 {
			return text[:i], true
		}
		n--
	}
	return text, false
}
