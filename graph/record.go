package graph

import (
	"fmt"

	"raddle.dev/graph/internal/fold"
	"raddle.dev/graph/internal/value"
	"raddle.dev/graph/internal/wire"
)

// The functions that write and read the parts of records. Each read follows its put.

// putWrites appends writes, not results.
func putWrites(b []byte, ws []Write) ([]byte, error) {
	b = wire.PutInt(b, len(ws))
	for _, w := range ws {
		if w.key == nil {
			return b, errNoKey
		}
		v, err := w.key.encodeStored(nil, w.val)
		if err != nil {
			return b, err
		}
		f := w.key.fold
		switch {
		case w.reset:
			f = fold.Set
		case f == fold.Set:
			f = fold.Reduce
		}
		b = fold.PutPatch(b, w.key.name, f, 0, v)
	}
	return b, nil
}

// decodeWrites turns journaled patches back into writes.
func (s State) decodeWrites(ps []fold.Patch) ([]Write, error) {
	ws := make([]Write, 0, len(ps))
	for _, p := range ps {
		d := s.findKey(p.Key)
		if d == nil {
			return nil, fmt.Errorf("key %q is no longer in the graph", p.Key)
		}
		v, err := d.decodeStored(p.Value)
		if err != nil {
			return nil, err
		}
		ws = append(ws, Write{d, boxNil(v), p.Fold == fold.Set})
	}
	return ws, nil
}

func putTags(b []byte, keys []*keyDef) []byte {
	b = wire.PutInt(b, len(keys))
	for _, k := range keys {
		b = wire.PutTexts(b, k.name, k.tag)
	}
	return b
}

// putFrontier appends what runs next to head, and the overlays of its tasks to data.
func putFrontier(head, data []byte, g *Graph, fr *frontier) ([]byte, []byte, error) {
	head = wire.PutInt(head, len(fr.tasks))
	var err error
	for i := range fr.tasks {
		t := &fr.tasks[i]
		head = wire.PutString(wire.PutInt(wire.PutString(head, g.nodes[t.node].Name), t.index), t.cause)
		if data, err = putWrites(data, t.over); err != nil {
			return head, data, err
		}
	}
	head = wire.PutInt(head, len(fr.arrived))
	for _, a := range fr.arrived {
		head = wire.PutTexts(head, g.joins[a.join].id, g.joins[a.join].from[a.src])
	}
	return head, data, nil
}

// putUpdate appends what a task returned, for a resume.
func putUpdate(b []byte, u *Update) ([]byte, error) {
	b, err := putWrites(b, u.Writes)
	if err != nil {
		return b, err
	}
	b = wire.PutBool(b, u.Goto != nil)
	b = wire.PutStrings(b, u.Goto)
	b = wire.PutBool(b, u.Send != nil)
	b = wire.PutInt(b, len(u.Send))
	for _, s := range u.Send {
		if b, err = putWrites(wire.PutString(b, s.To), s.Overlay); err != nil {
			return b, err
		}
	}
	b = wire.PutString(b, u.failed)
	b = wire.PutBool(b, u.Halt != nil)
	if u.Halt != nil {
		if b, err = value.EncodeAny(b, u.Halt.Value); err != nil {
			return b, fmt.Errorf("halt: %w", err)
		}
	}
	return b, nil
}

func (s State) decodeUpdate(b []byte) (u Update, err error) {
	r := &wire.Reader{Rest: b}
	if u.Writes, err = s.decodeWrites(fold.ReadPatches(r)); err != nil {
		return u, err
	}
	set := r.Bool()
	if u.Goto = r.Texts(); set && u.Goto == nil {
		u.Goto = []string{}
	}
	if r.Bool() {
		u.Send = []Send{}
	}
	for range r.Count() {
		to, ps := r.Text(), fold.ReadPatches(r)
		over, err := s.decodeWrites(ps)
		if err != nil {
			return u, err
		}
		u.Send = append(u.Send, Send{To: to, Overlay: over})
	}
	u.failed = r.Text()
	if r.Bool() {
		u.Halt = &Halt{Value: value.ReadAny(r)}
	}
	return u, r.Err
}

// The heads of snapshots, forks, edits and ends hold everything that listings need. Each read
// follows its put. Older records lack the parts that did not exist when they were
// written.
