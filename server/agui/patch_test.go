package agui

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestDiffValues(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{`{"a":1}`, `{"a":1}`, `null`},
		{`{"a":1}`, `{"a":2}`, `[{"op":"replace","path":"/a","value":2}]`},
		{`{"a":1}`, `{"b":null}`, `[{"op":"remove","path":"/a"},{"op":"add","path":"/b","value":null}]`},
		{`{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, `[{"op":"replace","path":"/a~1b/~0","value":2}]`},
		{`{"l":[1]}`, `{"l":[1,2,{"x":3}]}`, `[{"op":"add","path":"/l/-","value":2},{"op":"add","path":"/l/-","value":{"x":3}}]`},
		{`{"l":[1,2,3]}`, `{"l":[1]}`, `[{"op":"replace","path":"/l","value":[1]}]`},
		{`{"l":[1,2]}`, `{"l":[3,4,5]}`, `[{"op":"replace","path":"/l","value":[3,4,5]}]`},
		{`{"o":{}}`, `{"o":[]}`, `[{"op":"replace","path":"/o","value":[]}]`},
		{`1`, `2`, `[{"op":"replace","path":"","value":2}]`},
	} {
		got, err := json.Marshal(diffValues(json.RawMessage(c.was), json.RawMessage(c.is)))
		if err != nil || string(got) != c.want {
			t.Errorf("%s → %s: %s %v\nwant %s", c.was, c.is, got, err, c.want)
		}
	}
}

// The operations make the second of any two values of the first.
func TestDiffIsApplied(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		was, is := randomValue(r, 3), randomValue(r, 3)
		a, _ := json.Marshal(was)
		b, _ := json.Marshal(is)
		ops := diffValues(a, b)
		got := any(nil)
		if err := json.Unmarshal(a, &got); err != nil {
			t.Fatal(err)
		}
		for _, op := range ops {
			var err error
			if got, err = apply(got, op); err != nil {
				t.Fatalf("%s → %s: %+v: %v", a, b, op, err)
			}
		}
		var want any
		_ = json.Unmarshal(b, &want)
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s → %s: %+v gave %v", a, b, ops, got)
		}
	}
}

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(6); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range r.IntN(4) {
			m[[]string{"a", "b/c", "d~e", ""}[r.IntN(4)]] = randomValue(r, depth-1)
		}
		return m
	case n < 4 && depth > 0:
		l := []any{}
		for range r.IntN(4) {
			l = append(l, randomValue(r, depth-1))
		}
		return l
	}
	return []any{nil, true, 1.0, 2.0, "text"}[r.IntN(5)]
}

// apply applies one operation as RFC 6902 says.
func apply(v any, op operation) (any, error) {
	var value any
	if op.Op != "remove" {
		if err := json.Unmarshal(op.Value, &value); err != nil {
			return nil, err
		}
	}
	if op.Path == "" {
		return value, nil
	}
	parts := strings.Split(op.Path, "/")[1:]
	for i, p := range parts {
		parts[i] = strings.NewReplacer("~1", "/", "~0", "~").Replace(p)
	}
	return applyAt(v, parts, op.Op, value)
}

func applyAt(v any, path []string, op string, value any) (any, error) {
	name := path[0]
	switch v := v.(type) {
	case map[string]any:
		old, known := v[name]
		switch {
		case len(path) > 1 && known:
			changed, err := applyAt(old, path[1:], op, value)
			v[name] = changed
			return v, err
		case len(path) > 1, known != (op != "add"):
			return nil, fmt.Errorf("member %q", name)
		case op == "remove":
			delete(v, name)
		default:
			v[name] = value
		}
		return v, nil
	case []any:
		if name == "-" && op == "add" && len(path) == 1 {
			return append(v, value), nil
		}
		n, err := strconv.Atoi(name)
		if err != nil || n >= len(v) || op != "replace" && len(path) == 1 {
			return nil, fmt.Errorf("item %q", name)
		}
		if len(path) == 1 {
			v[n] = value
			return v, nil
		}
		v[n], err = applyAt(v[n], path[1:], op, value)
		return v, err
	}
	return nil, fmt.Errorf("%T has no %q", v, name)
}
