package keyword

import (
	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
)

// Stem returns a word in lower case without its English endings, by the English stemmer of the Snowball project
// (Porter2). Letters outside a to z stay as they are.
func Stem(word string) string {
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}
