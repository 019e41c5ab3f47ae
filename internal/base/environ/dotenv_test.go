package environ

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseDotenv(t *testing.T) {
	tests := map[string]struct {
		text   string
		vars   map[string]string
		faults []string // as LINE: TEXT
	}{
		"plain":                       {text: "A=1\nB = two words \n", vars: map[string]string{"A": "1", "B": "two words"}},
		"blank lines and comments":    {text: "\n# A=1\n  # B=2\nC=3", vars: map[string]string{"C": "3"}},
		"export":                      {text: "export A=1\nexport\tB=2\nexports=3\nexport=4\n", vars: map[string]string{"A": "1", "B": "2", "exports": "3", "export": "4"}},
		"empty":                       {text: "A=\nB=''\nC=\"\"\nD= # nothing\nE=#\n", vars: map[string]string{"A": "", "B": "", "C": "", "D": "", "E": ""}},
		"a comment behind a value":    {text: "A=sk-1 # mine\nB=a#b\nC=a\t#c\n", vars: map[string]string{"A": "sk-1", "B": "a#b", "C": "a"}},
		"single quotes":               {text: `A='a b' # c` + "\n" + `B='x # y'` + "\n" + `C='\n"$D"'` + "\n", vars: map[string]string{"A": "a b", "B": "x # y", "C": `\n"$D"`}},
		"double quotes":               {text: `A="a b" # c` + "\n" + `B="x\ny\t\"z\" \\ \$D \q"` + "\n", vars: map[string]string{"A": "a b", "B": "x\ny\t\"z\" \\ $D \\q"}},
		"equal signs in a value":      {text: "A=b=c==\n", vars: map[string]string{"A": "b=c=="}},
		"nothing is evaluated":        {text: "A=$B\nC=\"${B}\"\nD=`id`\n", vars: map[string]string{"A": "$B", "C": "${B}", "D": "`id`"}},
		"several lines":               {text: "A=\"-----BEGIN-----\nx # y\n-----END-----\"\nB='1\n2'\nC=3\n", vars: map[string]string{"A": "-----BEGIN-----\nx # y\n-----END-----", "B": "1\n2", "C": "3"}},
		"lines of Windows":            {text: "A=1\r\nB=\"x\r\ny\"\r\n", vars: map[string]string{"A": "1", "B": "x\ny"}},
		"a byte order mark":           {text: "\ufeffA=1\n", vars: map[string]string{"A": "1"}},
		"a name twice":                {text: "A=1\nA=2\n", vars: map[string]string{"A": "1"}, faults: []string{"2: A is set above; that value counts"}},
		"a line without a sign":       {text: "A=1\nsk-secret\nB=2\n", vars: map[string]string{"A": "1", "B": "2"}, faults: []string{"2: the line has no =, and sets nothing"}},
		"no name":                     {text: "=1\nA B=2\n", vars: map[string]string{}, faults: []string{"1: the text before = cannot be the name of a variable", "2: the text before = cannot be the name of a variable"}},
		"a quote without end":         {text: "A=\"x\nB=2\n", vars: map[string]string{"B": "2"}, faults: []string{"1: A: the quote does not end"}},
		"text behind a quote":         {text: "A=\"x\" y\nB='a'b\n", vars: map[string]string{"A": "\"x\" y", "B": "'a'b"}},
		"text behind the last line":   {text: "A=\"x\ny\" z\nB=2\n", vars: map[string]string{"B": "2"}, faults: []string{"1: A: text follows the quote"}},
		"an apostrophe in a sentence": {text: "A=it's\n", vars: map[string]string{"A": "it's"}},
		"no variable can have it":     {text: "A=a\x00b\n", vars: map[string]string{}, faults: []string{"1: A: the value has a character that no variable can have"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ParseDotenv([]byte(test.text))
			if diff := cmp.Diff(test.vars, got.Vars); diff != "" {
				t.Errorf("variables (-want +got):\n%s", diff)
			}
			var faults []string
			for _, f := range got.Faults {
				faults = append(faults, fmt.Sprintf("%d: %s", f.Line, f.Text))
			}
			if diff := cmp.Diff(test.faults, faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
		})
	}
}
