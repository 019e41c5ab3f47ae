package declare_test

import (
	"encoding/json"
	"fmt"

	"raddle.dev/tool/declare"
)

// The comments of a bash function declare a tool. A fault of one function does not affect the others.
func ExampleParseBash() {
	f := declare.ParseBash("tools.sh", []byte(`
# @cmd Count an article.
# @option --article! The name of the article
count() { echo 5; }

# @cmd Order an article.
# @option --amount <INT> How many
# @unknown
order() { :; }
`))
	for _, d := range f.Declarations {
		text, err := json.Marshal(d)
		fmt.Println(string(text), err)
	}
	for _, p := range f.Problems {
		fmt.Println(p)
	}
	// Output:
	// {"name":"count","description":"Count an article.","parameters":{"type":"object","properties":{"article":{"type":"string","description":"The name of the article"}},"required":["article"]}} <nil>
	// {"name":"order","description":"Order an article.","parameters":{"type":"object","properties":{"amount":{"type":"integer","description":"How many"}},"required":[]}} <nil>
	// tools.sh:8: @unknown(line 8) is unknown tag: the line is ignored; write it without '@' at its beginning
}

// The signature of a Python function declares a tool.
func ExampleParsePython() {
	f := declare.ParsePython("tools.py", []byte(`
def run(article: str, amount: int = 1):
    """Order an article.
    Args:
        article: The name of the article
        amount: How many
    """
`))
	for _, d := range f.Declarations {
		text, err := json.Marshal(d)
		fmt.Println(string(text), err)
	}
	// Output:
	// {"name":"run","description":"Order an article.\n    Args:\n        article: The name of the article\n        amount: How many","parameters":{"type":"object","properties":{"article":{"type":"string","description":"The name of the article"},"amount":{"type":"integer","description":"How many"}},"required":["article"]}} <nil>
}
