package cli

import (
	_ "embed"

	"github.com/spf13/cobra"
)

//go:embed schema/events.json
var eventsSchema string

//go:embed schema/result.json
var resultSchema string

func newSchemaCommand(env *environment) *cobra.Command {
	names := []string{"events", "result"}
	return &cobra.Command{
		Use:   "schema NAME",
		Short: "Print the JSON schema of an output format",
		Long: `"result" is the schema of what --output json writes, "events" that of each line of --output stream-json.
They are for run and resume.`,
		Example:   `  raddle schema result > result.schema.json`,
		Args:      checkArgCount(1, 1, "the name of a schema"),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "events":
				env.out.PrintText(eventsSchema)
			case "result":
				env.out.PrintText(resultSchema)
			default:
				return badUsage(suggestWord(args[0], names), "there is no schema %q", args[0])
			}
			return nil
		},
	}
}
