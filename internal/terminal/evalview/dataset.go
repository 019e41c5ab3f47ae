package evalview

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/plainfile"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/process/app"
	"raddle.dev/internal/proving/dataset"
	"raddle.dev/internal/proving/experiment"
	"raddle.dev/internal/proving/testcase"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/terminal/console"
)

// AddOptions are the flags of raddle dataset add.
type AddOptions struct {
	expect string
	output bool
	tags   []string
}

// DescribeAdd returns the command with its flags, without what it does.
func DescribeAdd(opts *AddOptions) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add FILE RUN[@POINT]...",
		Short: "Add runs that have happened to a data set",
		Long: `Writes an item for each run to the end of FILE, which is made if it is not there: what the run was given, and what it has made of
it as metadata. RUN@POINT is an item that continues a copy of the run from there on. Secrets are left out, as in exports.
A run that the data set has already is not added again.`,
		Example: `  raddle dataset add cases.jsonl last --expect-output
  raddle dataset add cases.jsonl last@7 --expect "It can wait." --tag late`,
	}
	flags := cmd.Flags()
	flags.StringVar(&opts.expect, "expect", "", "the output that would have been right: `TEXT`")
	flags.BoolVar(&opts.output, "expect-output", false, "the output of the run is right, and expected")
	flags.StringArrayVar(&opts.tags, "tag", nil, "give the items the tag `TAG` (repeatable)")
	return cmd
}

// Run carries the command out.
func (o *AddOptions) Run(ctx context.Context, con *console.Console, p *app.Process, args []string) error {
	path := p.Dirs.AbsPath(args[0])
	switch {
	case o.output && o.expect != "":
		return failure.NewUsage("leave one of them out", "--expect and --expect-output exclude each other")
	case filepath.Ext(path) != ".jsonl":
		return failure.NewUsage("name it FILE.jsonl; raddle eval reads other formats, too", "items are added to data sets of JSONL, and %s is none", args[0])
	}
	text, err := plainfile.Read(path, dataset.MaxFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var known []string
	if len(text) > 0 {
		file, err := dataset.Read(path, text)
		if err != nil {
			return &failure.Error{Kind: failure.Invalid, Err: err}
		}
		for _, item := range file.Items {
			known = append(known, item.ID)
		}
	}
	learn := p.NewLearner()
	added := 0
	for _, word := range args[1:] {
		word, err := p.Runs.ResolveLast(ctx, word)
		if err != nil {
			return err
		}
		item, notes, err := experiment.MakeItem(ctx, p, word, learn)
		if err != nil {
			return err
		}
		if slices.Contains(known, item.ID) {
			con.PrintNote("%s has %s already", p.Dirs.ShortPath(path), item.ID)
			continue
		}
		if err := o.addExpected(item); err != nil {
			return err
		}
		item.Tags = o.tags
		if text, err = experiment.AppendItem(p, text, item); err != nil {
			return err
		}
		for _, note := range notes {
			con.PrintNote("%s", note)
		}
		known = append(known, item.ID)
		added++
	}
	if added == 0 {
		return nil
	}
	if _, err := dataset.Read(path, text); err != nil {
		return err
	}
	if err := config.WritePrivate(path, text); err != nil {
		return err
	}
	con.PrintNote("%s: %s added", p.Dirs.ShortPath(path), wording.FormatCount(added, "item"))
	return nil
}

// addExpected gives an item what the flags say that is expected.
func (o *AddOptions) addExpected(item *dataset.Item) error {
	switch {
	case o.expect != "":
		item.Expected = o.expect
	case o.output:
		output, ok := item.Metadata.Get("output")
		if !ok {
			return failure.NewUsage("say what is expected with --expect TEXT", "%s has no output that could be expected", item.ID)
		}
		item.Expected = testcase.Text(output)
	}
	return nil
}
