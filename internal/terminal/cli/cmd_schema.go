package cli

import (
	"cmp"
	_ "embed"
	"slices"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/schema"
	"raddle.dev/internal/terminal/console"
	"raddle.dev/internal/terminal/ending"
)

//go:embed schema/events.json
var eventsSchema string

//go:embed schema/result.json
var resultSchema string

// outputSchemas are the schemas of what commands write.
var outputSchemas = map[string]string{"events": eventsSchema, "result": resultSchema}

func newSchemaCommand(con *console.Console) *cobra.Command {
	names := append(slices.Clone(schema.Names), "events", "result")
	slices.Sort(names)
	return &cobra.Command{
		Use:   "schema NAME",
		Short: "Print the JSON schema of a file or of an output format",
		Long: `Editors complete and check the files that you write with these schemas: "graph" is for graph.yaml, "agent" for an agent's config.yaml,
"config" for raddle's own, "permissions" for permissions.yaml, "hooks" for hooks.yaml, "transcript" for the replies of script:FILE, "mcp" for mcp.json, and "test" for *.test.yaml.
Programs read what raddle writes: "result" is the schema of --output json, "events" that of each line of --output stream-json. These two
are for run and resume.`,
		Example: `  raddle schema graph > graph.schema.json     for your editor
  raddle schema result > result.schema.json`,
		Args:      checkArgCount(1, 1, "the name of a schema"),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			text := cmp.Or(outputSchemas[args[0]], schema.Text(args[0]))
			if text == "" {
				return ending.BadUsage(ending.SuggestWord(args[0], names), "there is no schema %q", args[0])
			}
			con.Out.PrintExact(text)
			return nil
		},
	}
}
