package tool

// A SeenFile is a file as a call has read or written it. It has none of the file's text: only what shows that the file
// is still the same, and where it is not.
type SeenFile struct {
	Path string `json:"path"` // absolute, without links
	// Hash is the SHA-256 of the content in hexadecimal digits; empty if the content has a secret.
	Hash string `json:"sha256,omitempty"`
	// Lines has a short sum of each line; empty if there are too many, or the content has a secret.
	Lines string `json:"lines,omitempty"`
	Stamp string `json:"stamp,omitempty"` // size and time of the last change, which tell it if there is no hash

	Text string `json:"-"` // the content, for Redact only; empty if it is longer than [MaxImage]
}

// Redact returns the file without text. If the text has what redact removes, there are no sums either: a short secret
// could be guessed from them. The path is as redact leaves it.
func (f SeenFile) Redact(redact func(string) string) SeenFile {
	if redact(f.Text) != f.Text {
		f.Hash = ""
		f.Lines = ""
	}
	f.Path = redact(f.Path)
	f.Text = ""
	return f
}
