package app

import (
	"path/filepath"
	"strings"
)

// An Attachment is a file whose text becomes a part of a prompt.
type Attachment struct {
	Name string
	Text string
}

// AddAttachments adds the texts of files to a prompt, each with its name. If the prompt is only one file, it is the text of that file.
func AddAttachments(prompt string, files []Attachment) string {
	var parts []string
	if prompt != "" {
		parts = append(parts, prompt)
	}
	for _, f := range files {
		text := strings.TrimRight(f.Text, "\r\n")
		if prompt != "" || len(files) > 1 {
			text = "File " + filepath.ToSlash(f.Name) + ":\n" + text
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}
