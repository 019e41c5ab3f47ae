package shareview

import (
	"encoding/json"
	"strings"
	"testing"

	"raddle.dev/internal/base/jsonvalue"
)

// unpackValues is what src/share.ts does.
func unpackValues(t *testing.T, values []json.RawMessage) (list []any) {
	t.Helper()
	for _, text := range values {
		if text[0] != '[' {
			v, err := jsonvalue.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, v)
			continue
		}
		var places []int
		if err := json.Unmarshal(text, &places); err != nil {
			t.Fatal(err)
		}
		if places[0] == 0 {
			items := []any{}
			for _, at := range places[1:] {
				items = append(items, list[at])
			}
			list = append(list, items)
			continue
		}
		o := jsonvalue.NewObject()
		for i := 1; i < len(places); i += 2 {
			o.Set(list[places[i]].(string), list[places[i+1]])
		}
		list = append(list, o)
	}
	return list
}

// Values come out as they went in, and a value that is there costs nothing again.
func TestPackKeepsValues(t *testing.T) {
	p := newPack()
	texts := []string{`{"b":1,"a":[1,2,{"b":1}],"[0]":"[1,0]","":null}`, `"[0,1]"`, `[]`, `{}`, `[[],{},"",0,-1.5e300,true]`, `"\u003c/script\u003e\u2028"`, `{"__proto__":{"constructor":1}}`}
	at := map[string]int{}
	for _, text := range texts {
		place, err := p.addText([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		at[text] = place
	}
	size := len(p.values)
	for _, text := range texts {
		if again, err := p.addText([]byte(text)); err != nil || again != at[text] {
			t.Errorf("%s is at %d and %d, %v", text, at[text], again, err)
		}
	}
	if len(p.values) != size {
		t.Errorf("%d values became %d", size, len(p.values))
	}
	list := unpackValues(t, p.values)
	for text, place := range at {
		want, err := jsonvalue.Parse([]byte(text))
		if err != nil || !jsonvalue.Equal(want, list[place]) {
			t.Errorf("%s became %s", text, jsonvalue.Compact(list[place]))
		}
	}
	for _, wrong := range []string{`{"a":`, `1 2`, `[1`, ``} {
		if _, err := p.addText([]byte(wrong)); err == nil {
			t.Errorf("%s is taken", wrong)
		}
	}
	if _, err := p.addText([]byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))); err != nil {
		t.Error(err)
	}
}
