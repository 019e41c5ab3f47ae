// Package namelist makes lists of names, each name once, that share an array.
package namelist

import "slices"

// Lists are lists that are made one after the other. The zero Lists has none. It is not safe for concurrent use.
type Lists struct {
	all  []string
	from int             // where the current list begins
	seen map[string]bool // names in the current list, if it is long
}

// New returns lists with room for a number of names in all.
func New(names int) *Lists { return &Lists{all: make([]string, 0, names)} }

// long is the length from which a map finds duplicates faster than a scan.
const long = 16

// Add adds a name to the current list, unless it is there.
func (l *Lists) Add(name string) {
	list := l.all[l.from:]
	switch {
	case len(list) < long:
		if slices.Contains(list, name) {
			return
		}
	case l.seen == nil:
		l.seen = make(map[string]bool, 2*len(list))
		for _, s := range list {
			l.seen[s] = true
		}
		fallthrough
	default:
		if l.seen[name] {
			return
		}
		l.seen[name] = true
	}
	l.all = append(l.all, name)
}

// AddNew adds a name that is known not to be in the current list.
func (l *Lists) AddNew(name string) { l.all = append(l.all, name) }

// End ends the current list and returns it; nil if it is empty.
func (l *Lists) End() []string {
	from := l.from
	l.from = len(l.all)
	l.seen = nil
	if from == l.from {
		return nil
	}
	return l.all[from:l.from:l.from]
}
