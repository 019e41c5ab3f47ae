package graph

import (
	"cmp"
	"fmt"

	"raddle.dev/graph/internal/record"
	"raddle.dev/graph/internal/value"
)

// The functions between what a graph works with and the parts of records.

// encodeWrites returns patches of writes, not of results.
func encodeWrites(ws []Write) ([]record.Patch, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	ps := make([]record.Patch, len(ws))
	free := make([]byte, 0, 32) // for the values that fit
	for i, w := range ws {
		if w.key == nil {
			return nil, errNoKey
		}
		v, err := w.key.encodeStored(free, w.val)
		if err != nil {
			return nil, err
		}
		if !w.key.custom {
			free = v[len(v):]
		}
		f := w.key.fold
		switch {
		case w.reset:
			f = record.Set
		case f == record.Set:
			f = record.Reduce
		}
		ps[i] = record.Patch{Key: w.key.name, Fold: f, Value: v}
	}
	return ps, nil
}

// decodeWrites turns journaled patches back into writes.
func (s State) decodeWrites(ps []record.Patch) ([]Write, error) {
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
		ws = append(ws, Write{d, boxNil(v), p.Fold == record.Set})
	}
	return ws, nil
}

// listTags returns the tags of keys, in their order.
func listTags(keys []*keyDef) []record.Tag {
	tags := make([]record.Tag, len(keys))
	for i, k := range keys {
		tags[i] = record.Tag{Key: k.name, Tag: k.tag}
	}
	return tags
}

// encodeUpdate returns what a task returned, for a resume.
func encodeUpdate(u *Update) (b []byte, err error) {
	r := record.TaskUpdate{Goes: u.Goto != nil, Goto: u.Goto, Sends: u.Send != nil, Halted: u.Halt != nil}
	if u.failed != nil {
		r.Failed = u.failed.text
		r.Reason = u.failed.reason
	}
	if r.Writes, err = encodeWrites(u.Writes); err != nil {
		return nil, err
	}
	for _, s := range u.Send {
		over, err := encodeWrites(s.Overlay)
		if err != nil {
			return nil, err
		}
		r.Send = append(r.Send, record.Send{To: s.To, Over: over})
	}
	if u.Halt != nil {
		if r.Value, err = value.EncodeAny(nil, u.Halt.Value); err != nil {
			return nil, fmt.Errorf("halt: %w", err)
		}
	}
	return r.Encode(), nil
}

func (s State) decodeUpdate(b []byte) (u Update, err error) {
	var r record.TaskUpdate
	if err := r.Decode(b); err != nil {
		return u, err
	}
	if u.Writes, err = s.decodeWrites(r.Writes); err != nil {
		return u, err
	}
	if u.Goto = r.Goto; r.Goes && u.Goto == nil {
		u.Goto = []string{}
	}
	if r.Sends {
		u.Send = []Send{}
	}
	for _, send := range r.Send {
		over, err := s.decodeWrites(send.Over)
		if err != nil {
			return u, err
		}
		u.Send = append(u.Send, Send{To: send.To, Overlay: over})
	}
	if r.Failed != "" {
		u.failed = &handledFailure{text: r.Failed, reason: cmp.Or(r.Reason, r.Failed)}
	}
	if r.Halted {
		result, err := value.DecodeAny(r.Value)
		if err != nil {
			return u, err
		}
		u.Halt = &Halt{Value: result}
	}
	return u, nil
}
