package llm_test

import (
	"testing"

	"raddle.dev/llm"
)

func TestFlaw(t *testing.T) {
	text, blank, thought := llm.Text{Text: "words"}, llm.Text{Text: " \n"}, llm.Reasoning{Text: "hmm"}
	call := llm.ToolCall{ID: "a", Name: "look"}
	for _, k := range []struct {
		name    string
		parts   []llm.Part
		stop    llm.StopReason
		want    string
		useless bool
	}{
		{"an answer", []llm.Part{thought, text}, llm.StopEnd, "", false},
		{"an answer of a server that gives no reason", []llm.Part{text}, "", "", false},
		{"calls alone", []llm.Part{call}, llm.StopTools, "", false},
		{"calls that were cut", []llm.Part{call}, llm.StopLength, "", false},
		{"nothing", nil, llm.StopEnd, "is empty", true},
		{"white space", []llm.Part{blank}, llm.StopEnd, "is empty", true},
		{"reasoning", []llm.Part{thought, blank}, llm.StopEnd, "contains only reasoning, no answer", true},
		{"a part of a text", []llm.Part{text}, llm.StopLength, "was cut off at its length limit", false},
		{"a part of the reasoning", []llm.Part{thought}, llm.StopLength, "was cut off at its length limit", true},
		{"a filtered text", []llm.Part{text}, llm.StopFilter, "was withheld: the provider filtered it, or the model refused to answer", false},
		{"nothing but a filter", nil, llm.StopFilter, "was withheld: the provider filtered it, or the model refused to answer", true},
	} {
		got, useless := llm.Reply{Message: llm.Message{Role: llm.RoleAssistant, Parts: k.parts}, Stop: k.stop}.DescribeFlaw()
		if got != k.want || useless != k.useless {
			t.Errorf("%s: %q, %v; want %q, %v", k.name, got, useless, k.want, k.useless)
		}
	}
}
