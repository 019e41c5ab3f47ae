package wire

import (
	"fmt"
	"strconv"
	"strings"

	"raddle.dev/llm"
)

// A CallRule says which names and ids of tool calls a provider accepts in a
// conversation. Both consist of letters, digits, "_" and "-".
type CallRule struct {
	NameMax     int    // longest name, in bytes
	NameMarks   string // additional characters in names
	LetterFirst bool   // a name starts with a letter or "_"
	IDMax       int    // longest id, in bytes
	AnyID       bool   // ids may contain any characters
	IDLength    int    // the exact length of ids, which then consist of letters and digits; 0: any up to IDMax
	Items       string // the origin whose items the provider accepts; every other item becomes a text
}

// noResult is the result of a call that has none in the conversation.
const noResult = "There is no result: the call was interrupted."

// RepairCalls returns r with a history that the provider accepts, whatever
// names and ids the model has written. Valid ones are kept. An invalid name
// becomes the same valid name everywhere in the request; it never becomes the
// name of a tool. Every call has a unique id and exactly one result, and the
// results directly follow the message with the calls, in the order of the
// calls. An item of another origin becomes its text. A result without a call becomes a message of the user. A part that
// does not belong in a message of its role stays there, and the provider's
// package rejects it. r and its messages are not changed.
//
// Adding messages at the end of a history does not change the messages before
// them, as the providers' prompt caches require.
func RepairCalls(r llm.Request, rule CallRule) llm.Request {
	c := callRepair{
		rule:     rule,
		names:    map[string]string{},
		taken:    map[string]bool{},
		ids:      map[string]bool{},
		results:  pairResults(r.Messages),
		messages: make([]llm.Message, 0, len(r.Messages)),
	}
	for _, t := range r.Tools {
		c.names[t.Name] = t.Name
		c.taken[t.Name] = true
	}
	for i, m := range r.Messages {
		switch m.Role {
		case llm.RoleAssistant:
			c.addCalls(i, m)
		case llm.RoleTool:
			c.addOthers(i, m)
		default:
			c.messages = append(c.messages, m)
		}
	}
	r.Messages = c.messages
	return r
}

// A place is the position of a part: the index of its message, and its index in
// the message.
type place struct{ message, part int }

// pairing maps the places of calls to their results, and contains the places of
// these results.
type pairing struct {
	of    map[place]llm.ToolResult
	known map[place]bool
}

// pairResults finds the result of every call: the first one after it with its
// id, and with its name if several calls of a message have the same id. After a
// later call with the same id, results belong to the later call.
func pairResults(messages []llm.Message) pairing {
	p := pairing{map[place]llm.ToolResult{}, map[place]bool{}}
	type waiting struct {
		at   place
		name string
	}
	open := map[string][]waiting{}
	for i, m := range messages {
		fresh := map[string]bool{} // ids of this message
		for j, part := range m.Parts {
			switch part := part.(type) {
			case llm.ToolCall:
				if m.Role != llm.RoleAssistant {
					continue
				}
				if !fresh[part.ID] {
					fresh[part.ID] = true
					open[part.ID] = nil
				}
				open[part.ID] = append(open[part.ID], waiting{place{i, j}, part.Name})
			case llm.ToolResult:
				list := open[part.CallID]
				if m.Role != llm.RoleTool || len(list) == 0 {
					continue
				}
				chosen := 0
				for k, call := range list {
					if call.name == part.Name {
						chosen = k
						break
					}
				}
				p.of[list[chosen].at] = part
				p.known[place{i, j}] = true
				rest := append([]waiting(nil), list[:chosen]...)
				open[part.CallID] = append(rest, list[chosen+1:]...)
			}
		}
	}
	return p
}

// callRepair is a repair in progress.
type callRepair struct {
	rule     CallRule
	names    map[string]string // valid names by the names in the history
	taken    map[string]bool   // the valid names that are in use
	ids      map[string]bool   // the ids that are in use
	calls    int
	results  pairing
	messages []llm.Message
}

// addCalls adds a message of the assistant, and one with the results of its calls.
func (c *callRepair) addCalls(i int, m llm.Message) {
	parts := make([]llm.Part, 0, len(m.Parts))
	var results []llm.Part
	for j, part := range m.Parts {
		if item, ok := part.(llm.Item); ok && (c.rule.Items == "" || item.Origin != c.rule.Items) {
			if item.Text != "" {
				parts = append(parts, llm.Text{Text: item.Text})
			}
			continue
		}
		call, ok := part.(llm.ToolCall)
		if !ok {
			parts = append(parts, part)
			continue
		}
		result, ok := c.results.of[place{i, j}]
		if !ok {
			result = llm.ToolResult{Content: []llm.Part{llm.Text{Text: noResult}}, Error: true}
		}
		call.Name, call.ID = c.validName(call.Name), c.validID(call.ID)
		result.Name = call.Name
		result.CallID = call.ID
		parts = append(parts, call)
		results = append(results, result)
	}
	c.messages = append(c.messages, llm.Message{Role: m.Role, Parts: parts})
	if len(results) > 0 {
		c.messages = append(c.messages, llm.Message{Role: llm.RoleTool, Parts: results})
	}
}

// addOthers adds the parts of a message of results that are not results of
// calls.
func (c *callRepair) addOthers(i int, m llm.Message) {
	var foreign, stray []llm.Part
	for j, part := range m.Parts {
		result, ok := part.(llm.ToolResult)
		switch {
		case !ok:
			foreign = append(foreign, part)
		case !c.results.known[place{i, j}] && len(result.Content) > 0:
			stray = append(stray, llm.Text{Text: "Result of an earlier call of the tool " + strconv.Quote(result.Name) + ":\n"})
			stray = append(stray, result.Content...)
		}
	}
	if len(foreign) > 0 {
		c.messages = append(c.messages, llm.Message{Role: m.Role, Parts: foreign})
	}
	if len(stray) > 0 {
		c.messages = append(c.messages, llm.Message{Role: llm.RoleUser, Parts: stray})
	}
}

// validName returns the name that the provider receives for a tool.
func (c *callRepair) validName(name string) string {
	if valid, ok := c.names[name]; ok {
		return valid
	}
	valid := name
	if !c.acceptsName(name) {
		stem := replaceRunes(name, c.rule.NameMarks)
		if strings.Trim(stem, "_") == "" {
			stem = "unnamed_tool"
		}
		if first := stem[0]; c.rule.LetterFirst && !isLetter(rune(first)) && first != '_' {
			stem = "_" + stem
		}
		valid = stem[:min(len(stem), c.rule.NameMax)]
		for n := 2; c.taken[valid]; n++ {
			end := "_" + strconv.Itoa(n)
			valid = stem[:min(len(stem), c.rule.NameMax-len(end))] + end
		}
	}
	c.names[name] = valid
	c.taken[valid] = true
	return valid
}

func (c *callRepair) acceptsName(name string) bool {
	return name != "" && len(name) <= c.rule.NameMax && replaceRunes(name, c.rule.NameMarks) == name &&
		(!c.rule.LetterFirst || isLetter(rune(name[0])) || name[0] == '_')
}

// validID returns an id that no earlier call has. Generated ids contain the
// number of the call, so that they stay the same while a conversation grows.
func (c *callRepair) validID(id string) string {
	c.calls++
	if c.rule.IDLength > 0 {
		return c.exactID(id)
	}
	valid := id
	if id == "" || len(id) > c.rule.IDMax || (!c.rule.AnyID && replaceRunes(id, "") != id) || c.ids[id] {
		valid = "call_" + strconv.Itoa(c.calls)
		for n := 2; c.ids[valid]; n++ {
			valid = "call_" + strconv.Itoa(c.calls) + "_" + strconv.Itoa(n)
		}
	}
	c.ids[valid] = true
	return valid
}

// exactID is validID for a provider whose ids have one length.
func (c *callRepair) exactID(id string) string {
	fits := func(id string) bool {
		return len(id) == c.rule.IDLength && !c.ids[id] && !strings.ContainsAny(replaceRunes(id, ""), "_-") && replaceRunes(id, "") == id
	}
	for n := c.calls; !fits(id); n++ {
		const prefix = "call"
		id = prefix + fmt.Sprintf("%0*d", c.rule.IDLength-len(prefix), n)
	}
	c.ids[id] = true
	return id
}

// replaceRunes returns s with "_" for every character that is not an ASCII
// letter or digit, "_", "-" or one of marks.
func replaceRunes(s, marks string) string {
	return strings.Map(func(r rune) rune {
		if isLetter(r) || (r >= '0' && r <= '9') || r == '_' || r == '-' || (r < 0x80 && strings.ContainsRune(marks, r)) {
			return r
		}
		return '_'
	}, s)
}

func isLetter(r rune) bool { return (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z') }
