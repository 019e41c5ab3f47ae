package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestFitsStrict(t *testing.T) {
	object := func(properties, required string) string {
		return `{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`
	}
	for _, schema := range []string{
		object("", ""),
		object(`"a":{"type":"string","description":"x","enum":["y"]},"b":{"type":"array","items":{"type":"integer"}}`, `"b","a"`),
		object(`"a":{"anyOf":[{"type":"string"},{"type":"null"},`+object(`"c":{"type":"boolean"}`, `"c"`)+`]}`, `"a"`),
	} {
		if !FitsStrict(json.RawMessage(schema)) {
			t.Errorf("%s does not fit", schema)
		}
	}
	var many []string
	for i := range mostStrictProperties + 1 {
		many = append(many, fmt.Sprintf(`"p%d"`, i))
	}
	deep := `{"type":"string"}`
	for range deepestStrict {
		deep = `{"type":"array","items":` + deep + `}`
	}
	for _, schema := range []string{
		``, `{}`, `[]`, `true`, `{"type":"string"}`, `{"type":"object"}`, `{"type":"object","properties":{}}`,
		`{"type":"object","properties":{},"additionalProperties":true}`,
		object(`"a":{"type":"string"}`, ``), object(`"a":{"type":"string"}`, `"b"`), object(``, `"b"`), object(`"a":{"type":"string"},"b":{"type":"string"}`, `"a","a"`),
		object(`"a":{}`, `"a"`), object(`"a":true`, `"a"`), object(`"a":{"type":["string","null"]}`, `"a"`), object(`"a":{"type":"array"}`, `"a"`),
		object(`"a":{"type":"string","format":"uri"}`, `"a"`), object(`"a":{"type":"integer","minimum":1}`, `"a"`), object(`"a":{"type":"string","default":"x"}`, `"a"`),
		object(`"a":{"type":"object","properties":{}}`, `"a"`), object(`"a":{"anyOf":[]}`, `"a"`), object(`"a":{"$ref":"#"}`, `"a"`),
		object(strings.Join(many, `:{"type":"string"},`)+`:{"type":"string"}`, strings.Join(many, ",")), object(`"a":`+deep, `"a"`),
	} {
		if FitsStrict(json.RawMessage(schema)) {
			t.Errorf("%.200s fits", schema)
		}
	}
}
