package mcp_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"raddle.dev/tool"
	"raddle.dev/tool/mcp"
)

// The tools of a server are tools like others. Models can also search them.
func ExampleServers_Tools() {
	type article struct {
		Name string `json:"name"`
	}
	stock := sdk.NewServer(&sdk.Implementation{Name: "stock"}, nil)
	sdk.AddTool(stock, &sdk.Tool{Name: "count", Description: "Count an article."},
		func(_ context.Context, _ *sdk.CallToolRequest, a article) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("%d %s", len(a.Name), a.Name)}}}, nil, nil
		})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return stock }, nil))
	defer web.Close()

	file, err := mcp.Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers": {"stock": {"url": %q}}}`, web.URL))
	if err != nil {
		log.Fatal(err)
	}
	servers := mcp.Open(file, mcp.Options{})
	defer servers.Close()
	ctx := context.Background()
	tools, failed := servers.Tools(ctx, []string{"stock"})
	fmt.Println("failed:", failed)
	for _, t := range tools {
		fmt.Println(t.Name)
		if t.Name == "mcp__stock__count" {
			result, err := t.Run(ctx, tool.Call{Args: []byte(`{"name":"bolts"}`)})
			fmt.Println(result.Text(), err)
		}
	}
	// Output:
	// failed: []
	// mcp_invoke_stock
	// mcp_search_stock
	// mcp_describe_stock
	// mcp__stock__count
	// 5 bolts <nil>
}

// A fault of an entry keeps only its server from running.
func ExampleParse() {
	file, err := mcp.Parse("mcp.json", []byte(`{"mcpServers": {
  "docs": {"url": "https://example.org/mcp"},
  "odd": {"command": "serve", "url": "https://example.org/mcp"}
}}`))
	fmt.Println(len(file.Servers), err)
	for _, p := range file.Problems {
		fmt.Println(p.Pos, p.Message)
	}
	// Output:
	// 2 <nil>
	// mcp.json:3:38 MCP server 'odd' has both a "command" and a "url": remove one of them
}
