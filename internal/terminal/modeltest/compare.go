package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"raddle.dev/llm"
)

// errNewBeginning says that the second request of a conversation does not begin like the first.
var errNewBeginning = errors.New("the second request does not begin like the first, so that no cache helps")

// checkBeginning returns an error unless a request begins with the tools and messages of the one before it. Marks for
// caches may move.
func checkBeginning(before, after []byte) error {
	var old, next map[string]any
	if err := errors.Join(json.Unmarshal(before, &old), json.Unmarshal(after, &next)); err != nil {
		return err
	}
	old, _ = withoutMarks(old).(map[string]any)
	next, _ = withoutMarks(next).(map[string]any)
	for name, value := range old {
		other := next[name]
		if slices.Contains(messageLists, name) {
			list, _ := value.([]any)
			more, _ := other.([]any)
			value = list
			other = more[:min(len(list), len(more))]
		} else if !slices.Contains([]string{"system", "instructions", "tools", "systemInstruction"}, name) {
			continue
		}
		if !reflect.DeepEqual(value, other) {
			return fmt.Errorf("%w: %s differs", errNewBeginning, name)
		}
	}
	return nil
}

// withoutMarks removes the marks for caches from a value of JSON.
func withoutMarks(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "cache_control")
		for name, value := range v {
			v[name] = withoutMarks(value)
		}
	case []any:
		for i, value := range v {
			v[i] = withoutMarks(value)
		}
	}
	return v
}

// reasoningMembers are the members in which reasoning goes back, in the wires that raddle has.
var reasoningMembers = []string{
	"reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "thinking", "signature", "encrypted_content", "thought_signature", "thoughtSignature",
}

// findReturned returns the members in which the reasoning of a reply is in the request after it.
func findReturned(before, after []byte) []string {
	list := listMessages(after)
	text, _ := json.Marshal(list[min(len(list), len(listMessages(before))):]) // it was JSON
	var names []string
	for _, name := range reasoningMembers {
		_, value, found := strings.Cut(string(text), `"`+name+`":`)
		// whose members have the names of the blocks of another wire
		within := slices.Contains(names, "thinking_blocks")
		if found && !within && !strings.HasPrefix(value, `""`) {
			names = append(names, name)
		}
	}
	return names
}

// answerCalls answers each call of a reply.
func answerCalls(m llm.Message) llm.Message {
	answers := llm.Message{Role: llm.RoleTool}
	for _, c := range m.ToolCalls() {
		answers.Parts = append(answers.Parts, llm.ToolResult{
			CallID:  c.ID,
			Name:    c.Name,
			Content: []llm.Part{llm.Text{Text: "The sky is clear, 21 degrees."}},
		})
	}
	return answers
}
