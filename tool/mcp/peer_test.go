//go:build unix

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// peerMode, when set, makes the test binary an MCP server.
const peerMode = "RADDLE_TEST_PEER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(peerMode); mode != "" {
		if err := peer(mode); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// peer is a server that behaves well, or badly in one way.
func peer(mode string) error {
	if strings.HasPrefix(mode, "raw") {
		return serveRaw(mode)
	}
	if mode == "late" {
		if err := refuseFirst(); err != nil {
			return err
		}
	}
	switch mode {
	case "silent": // it starts and says nothing
		_, err := os.Stdin.Read(make([]byte, 1))
		select {
		case <-context.Background().Done():
		case <-make(chan struct{}):
		}
		return err
	case "dies":
		return errors.New("no license")
	case "prints":
		fmt.Println("Server is starting ...")
		fmt.Println("[info] {not json")
	case "complains":
		fmt.Fprintln(os.Stderr, "using key "+os.Getenv("PEER_TOKEN")+" \x1b[31mnow\x1b[0m")
	}
	server := newPeer(mode)
	if mode != "http" && mode != "sse" {
		return server.Run(context.Background(), &sdk.StdioTransport{})
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PEER_PORT"))
	if err != nil {
		return err
	}
	pick := func(r *http.Request) *sdk.Server {
		if want := os.Getenv("PEER_TOKEN"); r.Header.Get("Authorization") != "Bearer "+want {
			return nil
		}
		return server
	}
	var h http.Handler = sdk.NewStreamableHTTPHandler(pick, nil)
	if mode == "sse" {
		h = sdk.NewSSEHandler(pick, nil)
	}
	fmt.Println(l.Addr())
	return http.Serve(l, h)
}

func newPeer(mode string) *sdk.Server {
	options := &sdk.ServerOptions{}
	if mode == "many" {
		options.PageSize = 50
	}
	if strings.HasPrefix(mode, "rich") {
		options.Instructions = "Ask for notes first. The key is " + os.Getenv("PEER_TOKEN") + "."
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "peer", Version: "1"}, options)
	if strings.HasPrefix(mode, "rich") {
		addRich(server)
		if mode == "rich old" {
			server.AddReceivingMiddleware(refuseDiscovery)
		}
		return server
	}
	if mode == "many" {
		for i := range 300 {
			add(server, fmt.Sprintf("tool_%03d", i), fmt.Sprintf("Makes thing number %d.", i), nil, nothing)
		}
		return server
	}
	if mode == "traced" {
		add(server, "parent", "Says which span the call belongs to.", nil, func(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return text("parent: %v", r.Params.Meta["traceparent"]), nil
		})
		return server
	}
	add(server, "echo", "Says what it was told.", &sdk.ToolAnnotations{ReadOnlyHint: true}, echo)
	add(server, "die", "Ends the server.", nil, func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		p, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = p.Kill()
		}
		<-make(chan struct{})
		return nil, err
	})
	server.AddTool(&sdk.Tool{Name: "hang", Description: "Never answers.", InputSchema: anything}, hang)
	add(server, "fail", "Fails.", &sdk.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool)},
		func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: "no such ticket"}}}, nil
		})
	yes := true
	add(server, "show", "Shows a picture.", &sdk.ToolAnnotations{DestructiveHint: &yes}, show)
	add(server, "fetch", "Reads a page.", &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &yes}, nothing)
	if mode == "escapes" {
		server.AddTool(&sdk.Tool{Name: "paint", Description: "Paints \x1b[31mred\x1b[0m.", InputSchema: anything}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{
				Content: []sdk.Content{&sdk.TextContent{Text: "a\x1b]0;title\x07b\x00c"}, &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///x", Text: "\x1b[2Jd"}},
					&sdk.ResourceLink{URI: "file:///y", Name: "\x1b[1me"}},
				StructuredContent: map[string]any{"k\x1b[0m": []any{"\x1b[31mf\u009b0m\x00g"}},
			}, nil
		})
	}
	add(server, "grow", "Adds a tool.", nil, func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		add(server, "grown", "Has been added.", nil, nothing)
		return &sdk.CallToolResult{Content: []sdk.Content{}}, nil
	})
	add(server, "whoami", "Tells a secret.", nil, func(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		cwd, err := os.Getwd()
		return text("token %s, count %s, flag %s, pid %d, in %s", os.Getenv("PEER_TOKEN"), os.Getenv("COUNT"), os.Getenv("FLAG"), os.Getpid(), cwd), err
	})
	return server
}

var anything = map[string]any{"type": "object", "properties": map[string]any{"say": map[string]any{"type": "string"}}}

func add(s *sdk.Server, name, description string, a *sdk.ToolAnnotations, run func(*sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: description, Annotations: a, InputSchema: anything},
		func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return run(r) })
}

func text(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func nothing(*sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("done"), nil }

func echo(r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return text("%s", r.Params.Arguments), nil
}

// hang says on stderr when it begins and why it ends.
func hang(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	fmt.Fprintln(os.Stderr, "hanging")
	if strings.Contains(string(r.Params.Arguments), "for good") {
		<-make(chan struct{})
	}
	<-ctx.Done()
	fmt.Fprintln(os.Stderr, "cancelled")
	return nil, ctx.Err()
}

// dot is a picture of one pixel, as far as its first bytes say.
var dot = []byte("\x89PNG dot")

func show(*sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return &sdk.CallToolResult{
		Content: []sdk.Content{
			&sdk.TextContent{Text: "a dot"},
			&sdk.ImageContent{MIMEType: "image/png", Data: dot},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("beep")},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", MIMEType: "text/plain", Text: "inside"}},
			&sdk.ResourceLink{URI: "file:///b.txt", Name: "b"},
		},
		StructuredContent: map[string]any{"dots": 1},
	}, nil
}
