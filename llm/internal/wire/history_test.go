package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/llm"
)

var strictRule = CallRule{NameMax: 20, LetterFirst: true, IDMax: 10}

// describe writes a history as one line: roles, names and ids.
func describe(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		fmt.Fprintf(&b, "%s[", m.Role)
		for i, p := range m.Parts {
			if i > 0 {
				b.WriteString(" ")
			}
			switch p := p.(type) {
			case llm.ToolCall:
				fmt.Fprintf(&b, "%s=%s", p.ID, p.Name)
			case llm.ToolResult:
				fmt.Fprintf(&b, "%s=%s:%s", p.CallID, p.Name, llm.Message{Parts: p.Content}.Text())
			case llm.Text:
				b.WriteString(p.Text)
			}
		}
		b.WriteString("] ")
	}
	return strings.TrimSpace(b.String())
}

func TestRepairCalls(t *testing.T) {
	made := func(calls ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleAssistant, Parts: calls} }
	call := func(id, name string) llm.Part { return llm.ToolCall{ID: id, Name: name} }
	answered := func(results ...llm.Part) llm.Message { return llm.Message{Role: llm.RoleTool, Parts: results} }
	result := func(id, name, text string) llm.Part {
		return llm.ToolResult{CallID: id, Name: name, Content: []llm.Part{llm.Text{Text: text}}}
	}
	for _, c := range []struct {
		name     string
		messages []llm.Message
		want     string
	}{
		{"valid", []llm.Message{llm.User("a"), made(call("x", "f")), answered(result("x", "f", "1")), llm.User("b")},
			"user[a] assistant[x=f] tool[x=f:1] user[b]"},
		{"the same wrong name twice, another that looks alike, and the name of a tool", []llm.Message{
			made(call("1", "fs.ls"), call("2", "fs ls"), call("3", "fs.ls"), call("4", "fs_ls")),
			answered(result("1", "fs.ls", "a"), result("2", "fs ls", "b"), result("3", "fs.ls", "c"), result("4", "fs_ls", "d"))},
			"assistant[1=fs_ls_2 2=fs_ls_3 3=fs_ls_2 4=fs_ls] tool[1=fs_ls_2:a 2=fs_ls_3:b 3=fs_ls_2:c 4=fs_ls:d]"},
		{"a declared name stays, however odd", []llm.Message{made(call("1", "odd.tool")), answered(result("1", "odd.tool", "a"))},
			"assistant[1=odd.tool] tool[1=odd.tool:a]"},
		{"long names that begin alike", []llm.Message{made(call("1", strings.Repeat("x", 30)), call("2", strings.Repeat("x", 40))),
			answered(result("1", "", "a"), result("2", "", "b"))},
			"assistant[1=xxxxxxxxxxxxxxxxxxxx 2=xxxxxxxxxxxxxxxxxx_2] tool[1=xxxxxxxxxxxxxxxxxxxx:a 2=xxxxxxxxxxxxxxxxxx_2:b]"},
		{"blank and numbers", []llm.Message{made(call("1", ""), call("2", " "), call("3", "3d"), call("4", "馬")),
			answered(result("1", "", "a"), result("2", " ", "b"), result("3", "3d", "c"), result("4", "馬", "d"))},
			"assistant[1=unnamed_tool 2=unnamed_tool_2 3=_3d 4=unnamed_tool_3] tool[1=unnamed_tool:a 2=unnamed_tool_2:b 3=_3d:c 4=unnamed_tool_3:d]"},
		{"ids that are empty, long, odd, repeated", []llm.Message{
			made(call("", "f"), call("xxxxxxxxxxx", "f"), call("a:b", "f"), call("x", "f"), call("x", "g")),
			answered(result("", "f", "1"), result("xxxxxxxxxxx", "f", "2"), result("a:b", "f", "3"), result("x", "g", "5"), result("x", "f", "4"))},
			"assistant[call_1=f call_2=f call_3=f x=f call_5=g] tool[call_1=f:1 call_2=f:2 call_3=f:3 x=f:4 call_5=g:5]"},
		{"an id in use is not made up", []llm.Message{made(call("call_2", "f"), call("", "f")), answered(result("call_2", "f", "1"), result("", "f", "2"))},
			"assistant[call_2=f call_2_2=f] tool[call_2=f:1 call_2_2=f:2]"},
		{"one id in two turns, the first without a result", []llm.Message{made(call("x", "f")), made(call("x", "f")), answered(result("x", "f", "2"))},
			"assistant[x=f] tool[x=f:" + noResult + "] assistant[call_2=f] tool[call_2=f:2]"},
		{"results in several messages, behind a person", []llm.Message{made(call("x", "f"), call("y", "g")), answered(result("y", "g", "2")), llm.User("b"), answered(result("x", "f", "1"))},
			"assistant[x=f y=g] tool[x=f:1 y=g:2] user[b]"},
		{"a result without a call, and one without content", []llm.Message{answered(result("x", "f", "1"), llm.ToolResult{CallID: "y"}), llm.User("b")},
			"user[Result of an earlier call of the tool \"f\":\n 1] user[b]"},
		{"a result of another message's call, twice", []llm.Message{made(call("x", "f")), answered(result("x", "f", "1"), result("x", "f", "2"))},
			"assistant[x=f] tool[x=f:1] user[Result of an earlier call of the tool \"f\":\n 2]"},
		{"what does not belong there", []llm.Message{{Role: llm.RoleTool, Parts: []llm.Part{llm.Text{Text: "x"}}}, {Role: llm.RoleUser, Parts: []llm.Part{call("", "")}}},
			"tool[x] user[=]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := json.Marshal(c.messages)
			if err != nil {
				t.Fatal(err)
			}
			r := llm.Request{Messages: c.messages, Tools: []llm.ToolSpec{{Name: "fs_ls"}, {Name: "odd.tool"}}}
			if got := describe(RepairCalls(r, strictRule).Messages); got != c.want {
				t.Errorf("history is\n%s, want\n%s", got, c.want)
			}
			if after, err := json.Marshal(c.messages); err != nil || string(before) != string(after) {
				t.Errorf("the caller's messages have changed: %s, error %v", after, err)
			}
		})
	}
}

// TestRepairKeepsThePrefix: providers cache the beginning of a conversation, so that it must not change while the conversation grows.
func TestRepairKeepsThePrefix(t *testing.T) {
	var messages []llm.Message
	for i, name := range []string{"a.b", "a b", "", "a_b", "f", "a:b"} {
		id := []string{"x", "", "x"}[i%3]
		messages = append(messages, llm.User("go"),
			llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: id, Name: name}}},
			llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: id, Name: name}}})
	}
	whole := RepairCalls(llm.Request{Messages: messages}, strictRule).Messages
	for n := 3; n < len(messages); n += 3 {
		part := RepairCalls(llm.Request{Messages: messages[:n]}, strictRule).Messages
		if d := cmp.Diff(whole[:n], part); d != "" {
			t.Errorf("the first %d messages differ (-whole +part):\n%s", n, d)
		}
	}
}

// FuzzRepairCalls checks that what comes out is valid for the rule and stays as it is when it is repaired again.
func FuzzRepairCalls(f *testing.F) {
	f.Add("a.b\x00x\x00b", "x\x00\x00x", uint64(0b0110_1101))
	f.Fuzz(func(t *testing.T, names, ids string, order uint64) {
		n, i := strings.Split(names, "\x00"), strings.Split(ids, "\x00")
		var messages []llm.Message
		for k := range 12 {
			name, id := n[k%len(n)], i[k%len(i)]
			switch order >> (2 * k) & 3 {
			case 0:
				messages = append(messages, llm.User("u"))
			case 1:
				messages = append(messages, llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.ToolCall{ID: id, Name: name}, llm.ToolCall{ID: i[0], Name: n[0]}}})
			default:
				messages = append(messages, llm.Message{Role: llm.RoleTool, Parts: []llm.Part{llm.ToolResult{CallID: id, Name: name}}})
			}
		}
		got := RepairCalls(llm.Request{Messages: messages}, strictRule)
		seen := map[string]bool{}
		for k, m := range got.Messages {
			for j, p := range m.Parts {
				call, ok := p.(llm.ToolCall)
				if !ok {
					continue
				}
				result := got.Messages[k+1].Parts[j].(llm.ToolResult)
				h := callRepair{rule: strictRule}
				if !h.acceptsName(call.Name) || seen[call.ID] || call.ID == "" || len(call.ID) > strictRule.IDMax || result.CallID != call.ID || result.Name != call.Name {
					t.Fatalf("call %+v with result %+v", call, result)
				}
				seen[call.ID] = true
			}
		}
		if d := cmp.Diff(got, RepairCalls(got, strictRule)); d != "" {
			t.Errorf("the second repair changes (-first +second):\n%s", d)
		}
	})
}
