// Package pdftext reads the text of PDF files.
//
// A PDF contains the position of each glyph on a page, but often no spaces and no lines. [Read] restores them from the
// positions: a gap of about a sixth of the font's size is a space, and a new baseline is a new line. Lines keep the
// order in which the file draws them, which keeps columns apart; pieces of a line that are drawn later join it where
// they touch it. A word that is divided by a hyphen at the end of a line becomes one word again.
//
// Text in pictures is not read.
package pdftext
