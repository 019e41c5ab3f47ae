package openai

import (
	"encoding/json"
	"maps"
)

// mergeStreamed adds the members of a piece of a message to those of the pieces before it. Texts of pieces follow each
// other, and so do lists, whose objects are pieces of one object if they have the same index; every other value
// replaces the one before it.
func mergeStreamed(members, piece map[string]json.RawMessage) map[string]json.RawMessage {
	if members == nil {
		return maps.Clone(piece)
	}
	for name, value := range piece {
		members[name] = mergePiece(members[name], value)
	}
	return members
}

// mergePiece returns one value, of which before came earlier.
func mergePiece(before, piece json.RawMessage) json.RawMessage {
	var oldList, list []json.RawMessage
	if json.Unmarshal(before, &oldList) == nil && json.Unmarshal(piece, &list) == nil {
		for _, item := range list {
			oldList = mergeItem(oldList, item)
		}
		return encodeValue(oldList)
	}
	var oldText, text string
	if json.Unmarshal(before, &oldText) == nil && json.Unmarshal(piece, &text) == nil {
		return encodeValue(oldText + text)
	}
	return piece
}

// sameEach are the members of an item that each of its pieces repeats.
var sameEach = []string{"index", "type", "id", "format"}

// mergeItem adds a piece of an item to a list.
func mergeItem(list []json.RawMessage, piece json.RawMessage) []json.RawMessage {
	var item map[string]json.RawMessage
	if json.Unmarshal(piece, &item) != nil || len(item["index"]) == 0 {
		return append(list, piece)
	}
	for i, raw := range list {
		var old map[string]json.RawMessage
		if json.Unmarshal(raw, &old) != nil || string(old["index"]) != string(item["index"]) || string(old["type"]) != string(item["type"]) {
			continue
		}
		for _, name := range sameEach {
			if string(item[name]) != "null" && len(item[name]) > 0 {
				old[name] = item[name]
			}
			delete(item, name)
		}
		for name, value := range item {
			if string(value) != "null" {
				old[name] = mergePiece(old[name], value)
			}
		}
		list[i] = encodeValue(old)
		return list
	}
	return append(list, piece)
}

func encodeValue(v any) json.RawMessage {
	data, _ := json.Marshal(v) // it was JSON
	return data
}
