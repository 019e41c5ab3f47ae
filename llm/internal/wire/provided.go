package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ProvidedTools returns the objects of the provider's own tools that a request names, in their order. known has those
// of the wire. The error names the first one that the wire does not have.
func (c *Client) ProvidedTools(names []string, known map[string]any) (list []any, err error) {
	for _, name := range names {
		tool, has := known[name]
		if !has {
			return nil, c.UnsupportedError(fmt.Sprintf("the provider's tool %q; it has %s", name, strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
		}
		list = append(list, tool)
	}
	return list, nil
}

// RefuseProvided returns an error if a request names tools of the provider, for a wire that has none.
func (c *Client) RefuseProvided(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return c.UnsupportedError(fmt.Sprintf("the provider's tool %q; it has none", names[0]))
}

// These say what a provider has done by itself, for a person and for models of other providers.

// DescribeSearch returns a text about a search of the web.
func DescribeSearch(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = strconv.Quote(w)
	}
	return "[The provider searched the web for " + strings.Join(quoted, ", ") + ".]"
}

// DescribeFetch returns a text about a page that was read.
func DescribeFetch(address string) string { return "[The provider read " + address + ".]" }

// DescribeCode returns a text about a program that was run.
func DescribeCode(code string) string {
	if strings.TrimSpace(code) == "" {
		return "[The provider ran a program.]"
	}
	return "[The provider ran this program:\n" + strings.TrimSpace(code) + "]"
}

// DescribeInput returns a text about a call of one of the provider's tools, from its name and its input; "" if it is
// none that is known.
func DescribeInput(name string, input json.RawMessage) string {
	var in struct{ Query, URL, Code, Command string }
	_ = json.Unmarshal(input, &in) // another form says less
	switch {
	case strings.Contains(name, "search") && in.Query != "":
		return DescribeSearch(in.Query)
	case strings.Contains(name, "fetch") && in.URL != "":
		return DescribeFetch(in.URL)
	case strings.Contains(name, "code_execution") || strings.Contains(name, "code_interpreter"):
		return DescribeCode(in.Code + in.Command)
	}
	return ""
}
