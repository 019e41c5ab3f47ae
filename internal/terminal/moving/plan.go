package moving

import (
	"cmp"
	"slices"
)

// A Verdict is what happens to a thing.
type Verdict string

// These are the verdicts.
const (
	Taken   Verdict = "taken"   // it means the same in raddle
	Changed Verdict = "changed" // it is taken, and Why says what is different
	Left    Verdict = "left"    // Why says the reason, and what to do instead
)

// A Thing is one thing of another program.
type Thing struct {
	Program string  `json:"program"`
	Kind    string  `json:"kind"` // such as agent, role, server or rule
	Name    string  `json:"name"`
	From    string  `json:"from"` // the file
	To      string  `json:"to"`   // of raddle; "": it is left
	Verdict Verdict `json:"verdict"`
	Why     string  `json:"why,omitempty"`

	part part // how it is written; nil if it is left
}

// A part is how a thing is written into raddle's directories.
type part interface {
	// compareWith says what is there already.
	compareWith(t *Target) presence
	// writeTo writes it. Other content that is there is replaced.
	writeTo(t *Target) error
}

// A presence is what raddle's directories have of a thing.
type presence int

const (
	absent presence = iota
	same            // exactly this
	other           // something else of this name
	fixed           // something else of this name, which an import never replaces
)

// A Plan is everything that was found of the programs, and what would happen to it.
type Plan struct {
	Things []Thing `json:"things"`
	Keys   []Key   `json:"-"` // secrets that a person may store, one by one
}

// A Key is a key of a provider that a file of another program holds.
type Key struct {
	Program string
	Client  string // of raddle
	From    string
	value   string
}

// kindOrder is the order of the kinds in a list.
var kindOrder = []string{
	kindSetting, kindClient, kindKey, kindAgent, kindRole, kindCommand, kindMacro, kindSkill, kindTool, kindServer,
	kindRule, kindInstructions, kindMemory, kindSession, kindHook, kindOther,
}

const (
	kindSetting      = "setting"
	kindClient       = "client"
	kindKey          = "key"
	kindAgent        = "agent"
	kindRole         = "role"
	kindCommand      = "command"
	kindMacro        = "macro"
	kindSkill        = "skill"
	kindTool         = "tool"
	kindServer       = "server"
	kindRule         = "rule"
	kindInstructions = "instructions"
	kindMemory       = "memory"
	kindSession      = "session"
	kindHook         = "hook"
	kindOther        = "other"
)

// sortThings puts the things of each program in the order of their kinds. Things of one kind keep their order.
func sortThings(list []Thing) {
	slices.SortStableFunc(list, func(a, b Thing) int {
		return cmp.Compare(slices.Index(kindOrder, a.Kind), slices.Index(kindOrder, b.Kind))
	})
}

// settleAll compares each thing with what is there and with the things before it: of two with one place the first counts,
// and what is there stays unless replace is set.
func (p *Plan) settleAll(t *Target, replace bool) {
	owners := map[string]*Thing{}
	for i := range p.Things {
		thing := &p.Things[i]
		if thing.part == nil {
			thing.Verdict = Left
			thing.To = ""
			continue
		}
		if first := owners[thing.Kind+" "+thing.To]; first != nil {
			thing.leaveThing(first.Program + " has one of this name, which is taken; rename one of them to have both")
			continue
		}
		switch thing.part.compareWith(t) {
		case same:
			thing.leaveThing("it is there already")
		case fixed:
			thing.leaveThing("raddle has one of this name already, which an import does not replace")
		case other:
			if !replace {
				thing.leaveThing("raddle has another one of this name; --replace takes this one")
			}
		}
		if thing.part != nil {
			owners[thing.Kind+" "+thing.To] = thing
		}
	}
}

// leaveThing changes the verdict of a thing.
func (t *Thing) leaveThing(why string) {
	t.Verdict = Left
	t.Why = why
	t.To = ""
	t.part = nil
}

// Count returns how many things have a verdict.
func (p *Plan) Count(v Verdict) (n int) {
	for _, t := range p.Things {
		if t.Verdict == v {
			n++
		}
	}
	return n
}
