// Package ordinal counts the calls that an attempt of a node makes under each name.
package ordinal

import "strconv"

// A Counter counts calls by name. Most nodes use few names. The zero Counter has counted none.
type Counter struct {
	few  []count
	many map[string]int // all names, if there are many
}

type count struct {
	name string
	n    int
}

// fewNames is the number of names up to which a linear search is used.
const fewNames = 8

// NextOrdinal returns how many calls of a name came before this one, as text.
func (c *Counter) NextOrdinal(name string) string { return strconv.Itoa(c.countCall(name)) }

// PeekOrdinal returns what the next NextOrdinal with the name returns. It counts no call.
func (c *Counter) PeekOrdinal(name string) string {
	if c.many != nil {
		return strconv.Itoa(c.many[name])
	}
	for i := range c.few {
		if c.few[i].name == name {
			return strconv.Itoa(c.few[i].n)
		}
	}
	return "0"
}

func (c *Counter) countCall(name string) int {
	if c.many == nil {
		for i := range c.few {
			if f := &c.few[i]; f.name == name {
				f.n++
				return f.n - 1
			}
		}
		if len(c.few) < fewNames {
			c.few = append(c.few, count{name, 1})
			return 0
		}
		c.many = make(map[string]int, 2*fewNames)
		for _, f := range c.few {
			c.many[f.name] = f.n
		}
	}
	n := c.many[name]
	c.many[name]++
	return n
}
