package ragview

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"raddle.dev/flow"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
	"raddle.dev/rag"
	"raddle.dev/rag/load"
)

// SearchOptions are the flags of "rag search". The zero value searches in all documents, for the base's number of
// passages.
type SearchOptions struct {
	Output   string // the format of the result
	node     string
	top      int
	sources  []string
	metadata []string
	since    string
	until    string
}

// DescribeSearch returns the command with its flags, without --output and without what it does.
func DescribeSearch(opts *SearchOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "search BASE [QUERY]...",
		Short: "Show the parts of documents that best match queries",
		Long: `Each word behind BASE is a query: put a query of several words in quotes. Without one, each line of the standard input is a query.
BASE is an agent, or the file of a knowledge base. The base is opened once, however many queries there are.
With --output json, one query on the command line gives a list of passages, and several give a list of {"query", "chunks"}.`,
		Example: `  raddle examples copy handbook
  raddle rag build examples/handbook
  raddle rag search examples/handbook "notice period" "sick child" --top 1
  raddle rag search examples/handbook "notice period" --source leave.md`,
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.node, "node", "", "the `ID` of the rag node, if the agent has several")
	flags.IntVar(&opts.top, "top", 0, "show `N` passages; 0: the knowledge base's top_k")
	flags.StringArrayVar(&opts.sources, "source", nil, "look only in documents that are, lie in or match `PATH`; can be repeated")
	flags.StringArrayVar(&opts.metadata, "meta", nil, "look only in documents with the metadata `NAME=VALUE`; can be repeated")
	flags.StringVar(&opts.since, "since", "", "look only in documents of this `DATE` or later, as 2026-01-31")
	flags.StringVar(&opts.until, "until", "", "look only in documents of this `DATE` or earlier")
	return cmd
}

// found is what one query has found.
type found struct {
	Query  string       `json:"query"`
	Chunks []flow.Chunk `json:"chunks"`
}

// RunSearch carries the command out. The error says how it ends.
func (o SearchOptions) RunSearch(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	filter, err := o.makeFilter()
	if err != nil {
		return err
	}
	queries := args[1:]
	if len(queries) == 0 {
		if con.HasPerson() {
			return errNoQuery()
		}
		if queries, err = readQueries(con.In); err != nil {
			return err
		}
	}
	base, err := p.Knowledge().OpenBase(app.KnowledgeSource{Base: args[0], Node: o.node})
	if err != nil {
		return err
	}
	defer func() { _ = base.Close() }()
	var all []found
	for _, q := range queries {
		hits, err := base.Search(ctx, q, rag.SearchOptions{TopK: o.top, Filter: filter})
		switch {
		case ctx.Err() != nil:
			return ending.Silent{Code: ending.Interrupted}
		case err != nil:
			return err
		}
		all = append(all, found{q, flow.NewChunks(hits)})
	}
	name := func(source string) string { return con.Out.Name(p.Dirs.ShortPath(source)) }
	if len(args) == 2 {
		return con.PrintResult(o.Output, all[0].Chunks, func() string { return formatChunks(name, all[0].Chunks) })
	}
	return con.PrintResult(o.Output, all, func() string { return formatAll(name, all) })
}

// makeFilter returns the filter that the flags describe. The error names the first wrong one.
func (o SearchOptions) makeFilter() (f rag.Filter, err error) {
	f.Sources = o.sources
	for _, text := range o.metadata {
		name, value, ok := strings.Cut(text, "=")
		if !ok || name == "" {
			return f, ending.BadUsage("write it as --meta NAME=VALUE", "--meta %q has no name or no value", text)
		}
		if f.Metadata == nil {
			f.Metadata = map[string]string{}
		}
		f.Metadata[name] = value
	}
	for _, each := range []struct {
		flag, text string
		to         *time.Time
	}{{"--since", o.since, &f.Since}, {"--until", o.until, &f.Until}} {
		if each.text == "" {
			continue
		}
		date, ok := load.ParseDate(each.text)
		if !ok {
			return f, ending.BadUsage("write it as 2026-01-31 or 2026-01-31T08:00:00Z", "%s %q is not a date", each.flag, each.text)
		}
		*each.to = date
	}
	switch {
	case o.until == "":
	case len(o.until) == len(time.DateOnly):
		f.Until = f.Until.AddDate(0, 0, 1) // the day itself counts
	default:
		f.Until = f.Until.Add(time.Millisecond)
	}
	if err := f.Validate(); err != nil {
		return f, ending.BadUsage("", "%v", err)
	}
	return f, nil
}

// maxQuery is the size in bytes of the longest line of the standard input.
const maxQuery = 1 << 20

// readQueries reads the lines that are not blank.
func readQueries(in io.Reader) (queries []string, err error) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxQuery)
	for lines.Scan() {
		if q := strings.TrimSpace(lines.Text()); q != "" {
			queries = append(queries, q)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return nil, ending.BadUsage("", "query %d of the standard input is longer than %d bytes", len(queries)+1, maxQuery)
	case err != nil:
		return nil, err
	case len(queries) == 0:
		return nil, errNoQuery()
	}
	return queries, nil
}

func errNoQuery() error {
	return ending.BadUsage(`write it in quotes: raddle rag search BASE "QUERY"`, "the query is missing")
}

// formatAll shows what each query has found under the query.
func formatAll(name func(source string) string, all []found) string {
	var b strings.Builder
	for i, f := range all {
		if i > 0 {
			b.WriteString("\n\n\n")
		}
		fmt.Fprintf(&b, "? %s\n\n", f.Query)
		if len(f.Chunks) == 0 {
			b.WriteString("(nothing)")
		}
		b.WriteString(formatChunks(name, f.Chunks))
	}
	return b.String()
}

// formatChunks shows chunks under the names of their documents.
func formatChunks(name func(source string) string, chunks []flow.Chunk) string {
	var b strings.Builder
	for i, c := range chunks {
		if i > 0 {
			b.WriteString("\n\n")
		}
		fmt.Fprintf(&b, "%s, part %s\n  %s", name(c.Source), c.FormatPart(), strings.ReplaceAll(strings.TrimSpace(c.Text), "\n", "\n  "))
	}
	return b.String()
}
