package mcp

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
)

// toolTouches returns what a call of a tool reaches, as far as its annotations say. Only
// a tool that declares readOnlyHint counts as harmless. One with openWorldHint
// reaches the network: the hosts of the URLs among its arguments, or any host.
// Without that hint a tool that only reads is taken to stay on this machine, though
// the protocol's default is the opposite: few servers write the hint.
func toolTouches(t *sdk.Tool, args json.RawMessage) (touch tool.Touch) {
	a := t.Annotations
	switch {
	case a == nil:
		touch.Unknown = "has no annotations: its server does not say what it does"
	case a.ReadOnlyHint:
	case a.DestructiveHint != nil && *a.DestructiveHint:
		touch.Unknown = "may destroy something, as its server says"
	default:
		touch.Unknown = "may change something: its server does not say that it only reads"
	}
	if a != nil && a.OpenWorldHint != nil && *a.OpenWorldHint {
		if touch.Network = urlHosts(args); touch.Network == nil {
			touch.Network = []string{"*"}
		}
	}
	return touch
}

// toolTouches returns what a call of a tool reaches, with the definition of the tool.
func (s *server) toolTouches(t *sdk.Tool, args json.RawMessage) tool.Touch {
	touch := toolTouches(t, args)
	touch.Definition = describeTool(t)
	touch.Changed = s.options.Seen.isChanged(s.seenID(), t.Name, touch.Definition)
	return touch
}

// seenID is what the server is known by in the life of the process: its file and its id.
func (s *server) seenID() string {
	file := s.config.Pos
	for range 2 { // without line and column
		if i := strings.LastIndexByte(file, ':'); i >= 0 {
			file = file[:i]
		}
	}
	return file + "\x00" + s.config.ID
}

// invokeTouches returns what a call of mcp_invoke reaches: what the tool that it
// names does.
func (s *server) invokeTouches(raw json.RawMessage) (tool.Touch, error) {
	args := parseArguments(raw)
	name, failed := args.textField("tool")
	if failed != nil {
		return tool.Touch{Unknown: "names no tool"}, nil
	}
	with, _ := parseObject(args["arguments"])
	list, i := s.findListed(name)
	if i < 0 {
		return tool.Touch{Unknown: "names a tool that the server has not listed"}, nil
	}
	touch := s.toolTouches(list[i], with)
	if touch.Unknown != "" {
		touch.Unknown = "calls " + name + ", which " + touch.Unknown
	}
	touch.Passed = &tool.PassedCall{Tool: s.directNames(list)[i], Args: with}
	return touch, nil
}

// invokeRepeats reports whether the tool that a call of mcp_invoke names may be called
// again. A tool that the server has not listed may not.
func (s *server) invokeRepeats(raw json.RawMessage) bool {
	name, failed := parseArguments(raw).textField("tool")
	if failed != nil {
		return false
	}
	list, i := s.findListed(name)
	return i >= 0 && toolEffect(list[i]).MayRepeat()
}

// findListed returns the tools that the server has listed last, and the index of the tool with a
// name; -1 if there is none.
func (s *server) findListed(name string) ([]*sdk.Tool, int) {
	list := s.lastTools()
	return list, slices.IndexFunc(list, func(t *sdk.Tool) bool { return t.Name == name })
}

// lastTools returns the tools that the server has listed last. It does not start the server.
func (s *server) lastTools() []*sdk.Tool {
	s.mu.Lock()
	a := s.current
	s.mu.Unlock()
	if a == nil {
		return nil
	}
	select {
	case <-a.done:
		if a.conn != nil {
			return a.conn.currentTools()
		}
	default:
	}
	return nil
}

// urlHosts returns the hosts of the URLs among the texts of a JSON value, sorted. It returns nil
// if a text holds a URL among other words, because the call may then reach other hosts, too.
func urlHosts(value json.RawMessage) (hosts []string) {
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	clear := true
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case string:
			u, err := url.Parse(v)
			switch {
			case err == nil && u.Host != "" && !strings.ContainsAny(v, " \t\n\\,;") && strings.Count(v, "://") <= 1:
				hosts = append(hosts, strings.ToLower(u.Host))
			case strings.Contains(v, "//"):
				clear = false
			}
		case []any:
			for _, item := range v {
				visit(item)
			}
		case map[string]any:
			for _, item := range v {
				visit(item)
			}
		}
	}
	visit(v)
	if !clear {
		return nil
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}
