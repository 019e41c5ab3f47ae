package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
)

// longestInstructions is the number of bytes of a server's instructions that the model reads.
const longestInstructions = 8 << 10

// serverInstructions returns the instructions of the server as the end of a description.
func (s *server) serverInstructions(c *connection) string {
	res := c.session.InitializeResult()
	if res == nil || strings.TrimSpace(res.Instructions) == "" {
		return ""
	}
	text := s.redactText(strings.TrimSpace(res.Instructions))
	if len(text) > longestInstructions {
		text = strings.ToValidUTF8(text[:longestInstructions], "") + " ..."
	}
	return "\n\nInstructions of the server:\n" + text
}

// readerTools returns the functions for resources and prompts, of a server that has them.
func (s *server) readerTools(c *connection) (list []tool.Tool) {
	res := c.session.InitializeResult()
	if res == nil || res.Capabilities == nil {
		return nil
	}
	id := s.config.ID
	if res.Capabilities.Resources != nil {
		list = append(list, tool.Tool{
			Name: functionName("resources", id),
			Description: fmt.Sprintf("Without a uri, lists the resources of the MCP server %s: data that it offers for reading, and templates of "+
				"their addresses. With a uri, returns the contents of that resource.", id),
			Schema: json.RawMessage(`{"type":"object","properties":{"uri":{"type":"string","description":"The address of the resource to read"}}}`),
			Effect: tool.ReadOnly, Parallel: true, Touches: resourceTouches, Run: s.readResources,
		})
	}
	if res.Capabilities.Prompts != nil {
		list = append(list, tool.Tool{
			Name: functionName("prompts", id),
			Description: fmt.Sprintf("Without a name, lists the prompts of the MCP server %s: texts that it offers for common tasks, and their "+
				"arguments. With a name, returns that text.", id),
			Schema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"The prompt to return"},` +
				`"arguments":{"type":"object","additionalProperties":{"type":"string"},"description":"The arguments of the prompt"}}}`),
			Effect: tool.ReadOnly, Parallel: true, Run: s.readPrompts,
		})
	}
	return list
}

// resourceTouches returns what reading a resource reaches, as far as its address says.
func resourceTouches(args json.RawMessage) (touch tool.Touch, err error) {
	var uri string
	_ = json.Unmarshal(parseArguments(args)["uri"], &uri) // a value of another type reads nothing
	u, err := url.Parse(uri)
	switch {
	case uri == "":
	case err != nil:
		touch.Unknown = "reads an address that raddle cannot read"
	case u.Scheme == "file" && (u.Host == "" || u.Host == "localhost") && u.Path != "":
		touch.Reads = []string{u.Path}
	case (u.Scheme == "http" || u.Scheme == "https") && u.Host != "":
		touch.Network = []string{strings.ToLower(u.Host)}
	case filepath.IsAbs(uri):
		touch.Reads = []string{uri}
		touch.Unknown = "passes a path on to the server, which decides what it means"
	default:
		touch.Unknown = "passes an address on to the server, which decides what it means"
	}
	return touch, nil
}

// askServer makes a request that only reads, within the time of a call.
func askServer[R any](ctx context.Context, s *server, do func(context.Context, *sdk.ClientSession) (R, error)) (tool.Result, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return tool.Result{}, s.wrapError(ctx, err)
	}
	limited, cancel := context.WithTimeout(ctx, s.options.callTimeoutOf(s.config))
	defer cancel()
	defer context.AfterFunc(c.ended, cancel)()
	res, err := do(limited, c.session)
	if err != nil {
		return tool.Result{}, s.wrapError(ctx, err)
	}
	s.recordSuccess()
	text, err := json.Marshal(res)
	if err != nil {
		return tool.Result{}, err
	}
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return tool.Result{}, err
	}
	return s.redactResult(tool.JSONResult(plainValue(v))), nil
}

func (s *server) readResources(ctx context.Context, c tool.Call) (tool.Result, error) {
	args := parseArguments(c.Args)
	if _, ok := args["uri"]; ok {
		uri, failed := args.textField("uri")
		if failed != nil {
			return *failed, nil
		}
		return askServer(ctx, s, func(ctx context.Context, c *sdk.ClientSession) (any, error) {
			res, err := c.ReadResource(ctx, &sdk.ReadResourceParams{URI: uri})
			if err != nil {
				return nil, err
			}
			return map[string]any{"contents": contentsOf(res)}, nil
		})
	}
	return askServer(ctx, s, func(ctx context.Context, c *sdk.ClientSession) (any, error) {
		list, err := readPages(func(v *sdk.Resource) string { return v.URI }, func(cursor string) ([]*sdk.Resource, string, error) {
			res, err := c.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.Resources, res.NextCursor, nil
		})
		if err != nil {
			return nil, err
		}
		templates, err := readPages(func(v *sdk.ResourceTemplate) string { return v.URITemplate }, func(cursor string) ([]*sdk.ResourceTemplate, string, error) {
			res, err := c.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return res.ResourceTemplates, res.NextCursor, nil
		})
		if err != nil && !isAnswer(err) { // some servers have no templates
			return nil, err
		}
		return map[string]any{"resources": list, "templates": templates}, nil
	})
}

// contentsOf returns the contents of a resource, with a note instead of bytes.
func contentsOf(res *sdk.ReadResourceResult) []any {
	list := []any{}
	for _, c := range res.Contents {
		if c == nil {
			continue
		}
		if len(c.Blob) > 0 {
			list = append(list, map[string]string{"uri": c.URI, "mimeType": c.MIMEType, "blob": fmt.Sprintf("[%d bytes left out]", len(c.Blob))})
			continue
		}
		list = append(list, map[string]string{"uri": c.URI, "mimeType": c.MIMEType, "text": c.Text})
	}
	return list
}

func (s *server) readPrompts(ctx context.Context, c tool.Call) (tool.Result, error) {
	args := parseArguments(c.Args)
	if _, ok := args["name"]; !ok {
		return askServer(ctx, s, func(ctx context.Context, c *sdk.ClientSession) (any, error) {
			list, err := readPages(func(v *sdk.Prompt) string { return v.Name }, func(cursor string) ([]*sdk.Prompt, string, error) {
				res, err := c.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
				if err != nil {
					return nil, "", err
				}
				return res.Prompts, res.NextCursor, nil
			})
			return map[string]any{"prompts": list}, err
		})
	}
	name, failed := args.textField("name")
	if failed != nil {
		return *failed, nil
	}
	raw, ok := parseObject(args["arguments"])
	var with map[string]string
	if !ok || json.Unmarshal(raw, &with) != nil {
		return tool.FailedResult("Invalid 'arguments' in arguments: their values must be strings"), nil
	}
	return askServer(ctx, s, func(ctx context.Context, c *sdk.ClientSession) (any, error) {
		return c.GetPrompt(ctx, &sdk.GetPromptParams{Name: name, Arguments: with})
	})
}
