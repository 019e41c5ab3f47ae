// Package edit changes texts as models write it: by unified diffs, by the patches that OpenAI's models write, by blocks
// of SEARCH and REPLACE, and by an old and a new text. A change is made where it fits and nowhere else: what fits in
// several places, or in none, is an error that says so.
package edit
