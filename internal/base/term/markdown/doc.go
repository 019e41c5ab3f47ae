// Package markdown shows Markdown on a terminal: whole texts, and texts that arrive in pieces, block by block.
//
// The result is for a [term.Writer]: styles and links are its marks, and everything else is text that the writer
// cleans.
package markdown
