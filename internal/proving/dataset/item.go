package dataset

import (
	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/jsonvalue"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/proving/testcase"
)

// File is a data set.
type File struct {
	Path  string
	Items []*Item // in the order of the file
	// Scorers is the list of scorers in the file, as package score reads it; nil: it has none. Faults that are found in
	// it belong to Document.
	Scorers  *yaml.Node
	Document *strictyaml.Document
}

// Item is what one run of an agent is given, and what is expected of it.
type Item struct {
	Pos strictyaml.Pos
	ID  string // unique in its file; that of an item without one is its number, from 1

	Prompt    string
	State     *jsonvalue.Object // first values of the state; nil: none
	Variables []strictyaml.Pair
	Files     []string // as written: relative to the directory of the data set
	From      string   // RUN or RUN@RECORD, from which the run is forked; "": it starts at the beginning

	// Expect is what Expected says about an output; nil: nothing is expected. A value that is not made of the words of
	// a matcher is expected as it is.
	Expect   *testcase.Matcher
	Expected any // as it was written; nil: nothing is expected

	Tags     []string
	Metadata *jsonvalue.Object // other things that the file says, for people and scripts; nil: nothing

	numbered bool // the id is its number
}

// HasTag reports whether the item has one of the tags.
func (i *Item) HasTag(tags ...string) bool {
	for _, own := range i.Tags {
		for _, tag := range tags {
			if own == tag {
				return true
			}
		}
	}
	return false
}

// AsObject returns the item as [Read] reads it, in the order in which it is written, without the fields that are empty.
func (i *Item) AsObject() *jsonvalue.Object {
	o := &jsonvalue.Object{}
	if i.ID != "" && !i.numbered {
		o.Set(keyID, i.ID)
	}
	if i.From != "" {
		o.Set(keyFrom, i.From)
	}
	if i.Prompt != "" {
		o.Set(keyPrompt, i.Prompt)
	}
	if i.State != nil {
		o.Set(keyState, i.State)
	}
	if len(i.Variables) > 0 {
		variables := &jsonvalue.Object{}
		for _, v := range i.Variables {
			variables.Set(v.Key, v.Value)
		}
		o.Set(keyVariables, variables)
	}
	if len(i.Files) > 0 {
		o.Set(keyFiles, listValues(i.Files))
	}
	if i.Expected != nil {
		o.Set(keyExpect, i.Expected)
	}
	if len(i.Tags) > 0 {
		o.Set(keyTags, listValues(i.Tags))
	}
	if i.Metadata != nil {
		o.Set(keyMetadata, i.Metadata)
	}
	return o
}

func listValues(texts []string) []any {
	list := make([]any, len(texts))
	for n, text := range texts {
		list[n] = text
	}
	return list
}

// AppendLine appends the item to a text as one line of JSONL, with its line break.
func AppendLine(text []byte, i *Item) ([]byte, error) {
	text, err := jsonvalue.Append(text, i.AsObject())
	return append(text, '\n'), err
}
