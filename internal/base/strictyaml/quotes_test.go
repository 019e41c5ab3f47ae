package strictyaml

import "testing"

func TestFindEndOfQuotes(t *testing.T) {
	for text, want := range map[string]int{
		`'a' b`: 3, `'it''s' b`: 7, `'a\' b`: 4, `''`: 2, `''''`: 4, `"a" b`: 3, `"a\" b" c`: 7, `"a\\" b`: 5, `"it''s"`: 7, `'a"b'`: 5,
	} {
		if end, closed := FindEndOfQuotes(text, 0); end != want || !closed {
			t.Errorf("%s: %d, %v, want %d", text, end, closed, want)
		}
		if end, closed := FindEndOfQuotes([]byte("x: "+text), 3); end != want+3 || !closed {
			t.Errorf("x: %s: %d, %v, want %d", text, end, closed, want+3)
		}
	}
	for _, text := range []string{`'`, `"`, `'a''`, `"a\"`, `"a\`, `'a"`} {
		if end, closed := FindEndOfQuotes(text, 0); end != len(text) || closed {
			t.Errorf("%s: %d, %v", text, end, closed)
		}
	}
}
