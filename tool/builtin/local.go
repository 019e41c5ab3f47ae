package builtin

import (
	"context"
	"time"

	"raddle.dev/tool"
)

var localTools = []definition{
	{
		name:     "get_current_time",
		about:    "Get the date, the time and the time zone.",
		effect:   tool.ReadOnly,
		parallel: true,
		polls:    true,
		run: func(_ context.Context, h Host, _ arguments) (tool.Result, error) {
			return tool.TextResult(h.currentTime().Format(time.UnixDate)), nil
		},
	},
}
