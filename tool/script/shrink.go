package script

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"raddle.dev/tool"
)

// largestJSON is how much JSON is read to be shortened, in bytes.
const largestJSON = 16 << 20

// shortenJSON shortens a JSON value to one of at most limit bytes: the names of keys
// stay, long texts and lists lose their ends. It reports false if the text is not JSON.
func shortenJSON(text []byte, limit int) (tool.Result, bool) {
	var v any
	if json.Unmarshal(text, &v) != nil {
		return tool.Result{}, false
	}
	note := fmt.Sprintf("the result is %d bytes of JSON, and more than %d are not kept: long texts, lists and objects are cut, and say so", len(text), limit)
	for size := limit / 4; size > 0; size /= 2 {
		r := tool.JSONResult(struct {
			Truncated string `json:"truncated"`
			Result    any    `json:"result"`
		}{note, cutValue(v, size)})
		if len(r.Text()) <= limit {
			return r, true
		}
	}
	return tool.Result{}, false
}

// cutValue keeps about so many bytes of a text, and so many parts of a list or an object
// that there is room for a few words of each.
func cutValue(v any, size int) any {
	const part = 16 // bytes of an item, about
	most := max(size/part, 1)
	below := func(parts int) int {
		if parts > 1 {
			return max(size/2, 1)
		}
		return size
	}
	switch v := v.(type) {
	case string:
		if len(v) <= size {
			return v
		}
		end := size
		for end > 0 && !utf8.RuneStart(v[end]) {
			end--
		}
		return fmt.Sprintf("%s [... %d bytes left out ...]", v[:end], len(v)-end)
	case []any:
		list := make([]any, 0, min(len(v), most)+1)
		for _, item := range v[:min(len(v), most)] {
			list = append(list, cutValue(item, below(len(v))))
		}
		if left := len(v) - len(list); left > 0 {
			list = append(list, fmt.Sprintf("[... %d items left out ...]", left))
		}
		return list
	case map[string]any:
		object := make(map[string]any, min(len(v), most))
		for i, name := range slices.Sorted(maps.Keys(v)) {
			if i == most {
				object["..."] = fmt.Sprintf("%d keys left out", len(v)-most)
				break
			}
			object[name] = cutValue(v[name], below(len(v)))
		}
		return object
	}
	return v
}
