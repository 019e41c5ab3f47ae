package load

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
)

// notebookReader is part of the hash of notebooks: a change of it makes the next build read them again.
const notebookReader = "\x00ipynb 1"

// A notebook is a document of Jupyter, of format 4, as far as people read it.
type notebook struct {
	Cells    []notebookCell `json:"cells"`
	Metadata struct {
		Kernel struct {
			Language string `json:"language"`
		} `json:"kernelspec"`
		Language struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type notebookCell struct {
	Kind    string           `json:"cell_type"`
	Source  textLines        `json:"source"`
	Outputs []notebookOutput `json:"outputs"`
}

type notebookOutput struct {
	Text  textLines                  `json:"text"` // of a stream
	Data  map[string]json.RawMessage `json:"data"` // by media type
	Error string                     `json:"ename"`
	Value string                     `json:"evalue"`
}

// textLines is a text, or a list of its lines with their ends.
type textLines string

// UnmarshalJSON implements [json.Unmarshaler].
func (t *textLines) UnmarshalJSON(b []byte) error {
	var lines []string
	if json.Unmarshal(b, &lines) == nil {
		*t = textLines(strings.Join(lines, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(t))
}

// asNotebook reads the cells of a notebook as Markdown: texts, code, and the texts that it has written. Pictures and
// other data are left out.
func (f *File) asNotebook(ctx context.Context, doc *Document) error {
	if err := f.asText(ctx, doc); err != nil {
		return err
	}
	var n notebook
	if err := json.Unmarshal([]byte(doc.Text), &n); err != nil || n.Cells == nil {
		return errors.New("not a notebook of format 4: open it with Jupyter and save it again, or leave it out")
	}
	language := n.Metadata.Language.Name
	if language == "" {
		language = n.Metadata.Kernel.Language
	}
	var b strings.Builder
	add := func(before, text, after string) {
		if text = strings.TrimSpace(text); text != "" {
			b.WriteString(before + text + after + "\n\n")
		}
	}
	for _, c := range n.Cells {
		if c.Kind != "code" {
			add("", string(c.Source), "")
			continue
		}
		add("```"+language+"\n", string(c.Source), "\n```")
		for _, o := range c.Outputs {
			add("", o.describe(), "")
		}
	}
	doc.Ext = "md"
	doc.Text = b.String()
	return nil
}

// describe returns the text of an output.
func (o *notebookOutput) describe() string {
	if o.Error != "" {
		return o.Error + ": " + o.Value
	}
	var text textLines
	for _, kind := range []string{"text/markdown", "text/plain"} {
		if b, ok := o.Data[kind]; ok && json.Unmarshal(b, &text) == nil {
			return string(text)
		}
	}
	return string(o.Text)
}
