// Command server is an MCP server over stdin and stdout: the stock of a small
// shop, which an assistant may look at and reserve from.
//
// Its entry in mcp.json, with the path as seen from where the agent runs:
//
//	{"mcpServers": {"shop": {"command": "go", "args": ["run", "./server"]}}}
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	// Stdout belongs to the protocol: everything else goes to stderr.
	log.SetFlags(0)
	log.SetPrefix("shop: ")
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := newServer(newShop()).Run(ctx, &mcp.StdioTransport{}); err != nil && ctx.Err() == nil {
		log.Fatal(err)
	}
}

func newServer(s *shop) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "find_items",
		Description: "Finds items of the shop by words of their names. Without words it lists all.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, s.find)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "check_stock",
		Description: "Returns how many pieces of an item are in stock, and how many of them are reserved.",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, s.check)
	mcp.AddTool(server, &mcp.Tool{
		Name:        "reserve",
		Description: "Reserves pieces of an item for a customer. Reserving for the same customer again replaces the former number.",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: new(bool)},
	}, s.reserve)
	return server
}

// A shop is its items and who has reserved how many of them.
type shop struct {
	mu       sync.Mutex
	items    []item // sorted by SKU
	reserved map[string]map[string]int
}

// An item is something the shop sells.
type item struct {
	SKU    string `json:"sku"`
	Name   string `json:"name"`
	Pieces int    `json:"pieces"`
}

func newShop() *shop {
	return &shop{
		items: []item{
			{"L-100", "Loom, small", 4},
			{"R-210", "Raddle, 60 cm", 12},
			{"R-220", "Raddle, 90 cm", 0},
			{"Y-501", "Wool yarn, grey", 230},
			{"Y-502", "Wool yarn, madder red", 75},
		},
		reserved: map[string]map[string]int{},
	}
}

type query struct {
	Words string `json:"words,omitempty" jsonschema:"words that the name must hold"`
}

type found struct {
	Items []item `json:"items"`
}

func (s *shop) find(_ context.Context, _ *mcp.CallToolRequest, q query) (*mcp.CallToolResult, found, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	result := found{Items: []item{}}
	for _, it := range s.items {
		missing := slices.ContainsFunc(strings.Fields(q.Words), func(w string) bool {
			return !strings.Contains(strings.ToLower(it.Name), strings.ToLower(w))
		})
		if !missing {
			result.Items = append(result.Items, it)
		}
	}
	return nil, result, nil
}

type which struct {
	SKU string `json:"sku" jsonschema:"the item's number, such as R-210"`
}

type stock struct {
	Pieces   int `json:"pieces"`
	Reserved int `json:"reserved"`
}

func (s *shop) check(_ context.Context, _ *mcp.CallToolRequest, w which) (*mcp.CallToolResult, stock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, err := s.item(w.SKU)
	return nil, stock{Pieces: it.Pieces, Reserved: s.sum(w.SKU, "")}, err
}

type reservation struct {
	SKU      string `json:"sku" jsonschema:"the item's number, such as R-210"`
	Customer string `json:"customer" jsonschema:"who the pieces are for"`
	Pieces   int    `json:"pieces" jsonschema:"how many pieces; 0 gives them back"`
}

func (s *shop) reserve(_ context.Context, _ *mcp.CallToolRequest, r reservation) (*mcp.CallToolResult, stock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	it, err := s.item(r.SKU)
	if err != nil {
		return nil, stock{}, err
	}
	if free := it.Pieces - s.sum(r.SKU, r.Customer); r.Pieces < 0 || r.Pieces > free {
		return nil, stock{}, fmt.Errorf("%d pieces of %s cannot be reserved: %d are free", r.Pieces, r.SKU, free)
	}
	if s.reserved[r.SKU] == nil {
		s.reserved[r.SKU] = map[string]int{}
	}
	s.reserved[r.SKU][r.Customer] = r.Pieces
	return nil, stock{Pieces: it.Pieces, Reserved: s.sum(r.SKU, "")}, nil
}

func (s *shop) item(sku string) (item, error) {
	for _, it := range s.items {
		if it.SKU == sku {
			return it, nil
		}
	}
	return item{}, fmt.Errorf("there is no item %q: find_items tells the numbers", sku)
}

// sum returns how much of an item is reserved by all customers except one.
func (s *shop) sum(sku, except string) (n int) {
	for customer, pieces := range s.reserved[sku] {
		if customer != except {
			n += pieces
		}
	}
	return n
}
