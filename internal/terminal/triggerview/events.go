package triggerview

import (
	"context"
	"strconv"
	"time"

	"raddle.dev/internal/base/term"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/storage/mail"
	"raddle.dev/internal/terminal/console"
)

// ListEvents prints the events with a name that are kept, in an output format; "": those of all names.
func ListEvents(ctx context.Context, con *console.Console, p *app.Process, name, output string) error {
	list, err := p.ListEvents(ctx, name)
	if err != nil {
		return err
	}
	if output == console.FormatJSON {
		return con.PrintJSON(list)
	}
	if len(list) == 0 {
		con.PrintNote("no events are kept")
		return nil
	}
	table := term.NewTable(
		term.NewColumn("EVENT", func(e mail.Event) string { return term.CleanText(e.Name) }),
		term.NewColumn("KEY", func(e mail.Event) string { return term.CleanText(e.Key) }),
		term.NewColumn("SENT", func(e mail.Event) string { return e.Sent.Local().Format(time.DateTime) }),
		term.NewColumn("RUNS", func(e mail.Event) string { return strconv.Itoa(len(e.Taken)) }),
		term.NewColumn("DATA", func(e mail.Event) string { return term.CleanText(string(e.Data)) }),
	)
	for _, e := range list {
		table.AddRow(e)
	}
	con.PrintTable(table)
	return nil
}
