package moving

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/term"
	"raddle.dev/internal/base/wording"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/terminal/console"
)

// Options say what a person wants of an import.
type Options struct {
	Program string // "": all that are here
	From    string
	DryRun  bool // show the plan only
	Replace bool // take what raddle has under the same name
	Yes     bool // do not ask before anything is written
	Output  string
}

// An Importer shows a plan, asks, and carries it out.
type Importer struct {
	*console.Console
	Target *Target
	Keys   *keystore.Store
	Ask    term.Prompter // nil: there is no person
}

// Run imports.
func (m *Importer) Run(ctx context.Context, o Options) error {
	req := Request{Replace: o.Replace}
	if o.From != "" {
		req.From = m.Target.Dirs.AbsPath(o.From)
	}
	switch {
	case config.IsFile(o.Program):
		return failure.NewUsage("raddle runs import "+wording.QuoteWord(o.Program), "import takes things from another program, and %s is a file", o.Program)
	case o.Program != "":
		p, err := FindProgram(o.Program)
		if err != nil {
			return err
		}
		req.Programs = []Program{p}
	case o.From != "":
		return failure.NewUsage("write: raddle import PROGRAM --from "+wording.QuoteWord(o.From), "--from needs the name of a program")
	}
	plan, err := Find(m.Target, req)
	if err != nil {
		return err
	}
	if !o.DryRun {
		if err := m.carryOut(ctx, plan, o); err != nil {
			return err
		}
	} else if err := m.PrintResult(o.Output, plan, func() string { return plan.Text(m.Out.Colors) }); err != nil {
		return err
	}
	if o.Output == console.FormatText && o.DryRun {
		m.PrintNote("raddle: nothing was written")
	}
	return nil
}

// carryOut asks, writes, and shows what was done.
func (m *Importer) carryOut(ctx context.Context, plan *Plan, o Options) error {
	asks := m.Ask != nil && !o.Yes && o.Output == console.FormatText
	count := plan.Count(Taken) + plan.Count(Changed)
	if asks {
		m.Out.PrintText(plan.Text(m.Out.Colors))
		if count > 0 {
			yes, err := m.confirmChoice(ctx, fmt.Sprintf("Take %s?", wording.FormatCount(count, "thing")))
			if err != nil || !yes {
				m.PrintNote("raddle: nothing was written")
				return err
			}
		}
	}
	failed := plan.Write(m.Target)
	if asks {
		for _, t := range plan.Things {
			if strings.HasPrefix(t.Why, writeFailed) {
				m.PrintWarning(t.Kind + " " + term.CleanLine(t.Name) + ": " + term.CleanLine(t.Why))
			}
		}
	} else if err := m.PrintResult(o.Output, plan, func() string { return plan.Text(m.Out.Colors) }); err != nil {
		return err
	}
	if err := m.offerKeys(ctx, plan); err != nil {
		return err
	}
	if failed > 0 {
		return &failure.Error{
			Kind: failure.Invalid,
			Msg:  wording.FormatCount(failed, "thing") + " could not be written",
			Next: "correct what the list says, and import again: what is there already is left",
		}
	}
	if count > 0 {
		m.PrintNote("raddle: %s taken; next: raddle doctor", wording.FormatCount(count, "thing"))
	}
	return nil
}

// offerKeys asks for each key whether to store it. Without a person none is.
func (m *Importer) offerKeys(ctx context.Context, plan *Plan) error {
	if m.Ask == nil || m.Keys == nil {
		return nil
	}
	for _, k := range plan.Keys {
		if m.Keys.PlaceOf(k.Client) != keystore.Nowhere {
			continue
		}
		yes, err := m.confirmChoice(ctx, fmt.Sprintf("Store the key of %s that %s has, among raddle's keys?", term.CleanLine(k.Client), term.CleanLine(k.From)))
		if err != nil {
			return err
		}
		if !yes {
			continue
		}
		place, why, err := m.Keys.Save(k.Client, k.value, false)
		if err != nil {
			return err
		}
		if why != nil {
			m.PrintWarning(term.CleanLine(why.Error()))
		}
		m.PrintNote("raddle: the key of %s is stored in the %s", term.CleanLine(k.Client), place)
	}
	return nil
}

// confirmChoice asks a question that Enter alone answers with no.
func (m *Importer) confirmChoice(ctx context.Context, question string) (bool, error) {
	choices := []term.Choice{{Label: "no", Word: "no", Key: "n"}, {Label: "yes", Word: "yes", Key: "y"}}
	if err := m.Ask.ShowQuestion(ctx, question, choices); err != nil {
		return false, err
	}
	n, err := m.Ask.ChooseOne(ctx, term.Menu{Choices: choices})
	return n == 1, err
}

// Text returns the plan as a table for a person: what is taken, what is changed, and what is left and why.
func (p *Plan) Text(colors term.Colors) string {
	var b strings.Builder
	program := ""
	kind := 0
	name := 0
	for _, t := range p.Things {
		kind = max(kind, term.TextWidth(t.Kind))
		name = max(name, min(term.TextWidth(term.CleanLine(t.Name)), longestName))
	}
	styles := map[Verdict]term.Style{Taken: term.Green, Changed: term.Yellow, Left: term.Dim}
	for _, t := range p.Things {
		if t.Program != program {
			program = t.Program
			b.WriteString(colors.Paint(term.Bold, titleOf(program)) + "\n")
		}
		verdict := term.PadText(colors.Paint(styles[t.Verdict], string(t.Verdict)), len("changed"))
		line := "  " + verdict + "  " + term.PadText(t.Kind, kind) + "  " + term.PadText(term.CutEnd(term.CleanLine(t.Name), longestName), name)
		what := []string{}
		if t.To != "" {
			what = append(what, "→ "+term.CleanLine(t.To))
		}
		if t.Why != "" {
			what = append(what, term.CleanLine(t.Why))
		}
		b.WriteString(strings.TrimRight(line+"  "+strings.Join(what, "; "), " ") + "\n")
	}
	fmt.Fprintf(&b, "%d taken, %d changed, %d left", p.Count(Taken), p.Count(Changed), p.Count(Left))
	return b.String()
}

// longestName is how many columns a name gets in the table.
const longestName = 40

func titleOf(name string) string {
	all := Programs()
	if i := slices.IndexFunc(all, func(p Program) bool { return p.Name == name }); i >= 0 {
		return all[i].Title
	}
	return name
}
