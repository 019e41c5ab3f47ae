package flow

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/flow/check"
	"raddle.dev/flow/spec"
	"raddle.dev/internal/jsonvalue"
	"raddle.dev/llm"
	"raddle.dev/tool"
)

// caseTools are the tools of a case. Each gives the text that the case has for
// it; a server is one function, named by its prefix.
type caseTools struct {
	run   *caseRun
	known check.Context
}

// Open implements Toolbox.
func (b caseTools) Open(ToolNeed) (*Toolset, error) {
	set := &Toolset{}
	results, _ := b.run.c.Host.Get("tool_results")
	texts, _ := results.(*jsonvalue.Object)
	for _, file := range b.known.Tools {
		name := spec.ToolStem(file)
		set.Tools = append(set.Tools, tool.Tool{Name: name, Run: func(context.Context, tool.Call) (tool.Result, error) {
			return tool.TextResult(textOf(texts, name)), nil
		}})
	}
	set.Servers = b.known.Servers
	set.Serve = func(_ context.Context, ids []string) (tools []tool.Tool, _ []error) {
		for _, id := range ids {
			tools = append(tools, tool.Tool{Name: serverPrefix + id, Run: func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }})
		}
		return tools, nil
	}
	return set, nil
}

// said is the message of a scripted reply.
func said(reply *jsonvalue.Object, turn int) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: textOf(reply, "text")}}}
	for i, v := range list(reply, "tool_calls") {
		call := v.(*jsonvalue.Object)
		args, _ := call.Get("args")
		m.Parts = append(m.Parts, llm.ToolCall{ID: fmt.Sprintf("call%d.%d", turn, i), Name: textOf(call, "name"), Args: json.RawMessage(jsonvalue.Compact(args))})
	}
	return m
}

// checkTools compares the offered tools and servers, and the last outcome, with
// what a reply expects of them.
func (r *caseRun) checkTools(s *jsonvalue.Object, req llm.Request) {
	offered := map[string][]string{"expect_tools": {}, "expect_mcp": {}}
	for _, t := range req.Tools {
		if id, ok := strings.CutPrefix(t.Name, serverPrefix); ok {
			offered["expect_mcp"] = append(offered["expect_mcp"], id)
		} else {
			offered["expect_tools"] = append(offered["expect_tools"], t.Name)
		}
	}
	for _, key := range []string{"expect_tools", "expect_mcp"} {
		if _, ok := s.Get(key); !ok {
			continue
		}
		want, got := append([]string{}, texts(s, key)...), offered[key]
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			r.t.Errorf("%s (-want +got):\n%s", key, diff)
		}
	}
	if want := textOf(s, "expect_tool_result"); want != "" && !strings.Contains(lastOutcome(req.Messages), want) {
		r.t.Errorf("the last outcome is %q, want %q in it", lastOutcome(req.Messages), want)
	}
}

func lastOutcome(messages []llm.Message) string {
	last := messages[len(messages)-1]
	if last.Role != llm.RoleTool || len(last.Parts) == 0 {
		return ""
	}
	result, _ := last.Parts[len(last.Parts)-1].(llm.ToolResult)
	return llm.Message{Parts: result.Content}.Text()
}
