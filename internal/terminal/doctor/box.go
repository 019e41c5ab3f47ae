package doctor

import (
	"context"
	"strings"

	"raddle.dev/internal/process/sandbox"
)

// CheckBox checks that the box holds in which commands of agents run without a question, by attacks on it.
func (d *Doctor) CheckBox(ctx context.Context) {
	tools := d.Process.Tools
	if !tools.UsesBox() {
		d.addOK("box", "switched off: commands that are not known to be harmless ask")
		return
	}
	b, tb, err := sandbox.OpenBox(tools, d.Process.Dirs.Work)
	if err != nil {
		d.addWarning("box", "commands that are not known to be harmless ask, as with box: false", "%v", err)
		return
	}
	escaped, tried, err := b.AttackBox(ctx, tb.ChildEnv())
	switch {
	case err != nil:
		d.addError("box", "", err)
	case len(escaped) > 0:
		d.addWarning("box", "switch it off with box: false in config.yaml, and report this", "it does not hold: %s", strings.Join(escaped, ", "))
	default:
		held := b.DescribeBox()
		d.addOK("box", "holds against %d attacks, by %s: commands that are not known to be harmless run in it", tried, held.Way)
		if len(held.Missing) > 0 {
			d.addOK("box", "not held: %s", strings.Join(held.Missing, "; "))
		}
	}
}
