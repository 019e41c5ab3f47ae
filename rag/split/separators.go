package split

import "strings"

var plain = []string{"\n\n", "\n", " ", ""}

// words are the constructs that begin a line with a word and a space, by language.
var words = map[string]string{
	"c":     "class void int float double if for while switch case",
	"go":    "func var const type if for switch case",
	"java":  "class public protected private static if for while switch case",
	"js":    "function const let var class if for while switch case default",
	"php":   "function class if foreach while do switch case",
	"proto": "message service enum option import syntax",
	"rb":    "def class if unless while for do begin rescue",
	"rs":    "fn const let if while for loop match const",
	"scala": "class object def val var if for while match case",
	"swift": "func class struct enum if for while do switch case",
	"sol": "pragma,using,contract,interface,library,constructor,type,function,event,modifier,error,struct,enum,if,for,while," +
		"do while,assembly",
}

// markers are the constructs of the other languages, as they appear in the text.
var markers = map[string][]string{
	"py":  {"\nclass ", "\ndef ", "\n\tdef "},
	"rst": {"\n===\n", "\n---\n", "\n***\n", "\n.. "},
	"md": {"\n## ", "\n### ", "\n#### ", "\n##### ", "\n###### ", "```\n\n",
		"\n\n***\n\n", "\n\n---\n\n", "\n\n___\n\n"},
	"tex": {"\n\\chapter{", "\n\\section{", "\n\\subsection{", "\n\\subsubsection{",
		"\n\\begin{enumerate}", "\n\\begin{itemize}", "\n\\begin{description}", "\n\\begin{list}", "\n\\begin{quote}",
		"\n\\begin{quotation}", "\n\\begin{verse}", "\n\\begin{verbatim}", "\n\\begin{align}", "$$", "$"},
}

const htmlTags = "body div p br li h1 h2 h3 h4 h5 h6 span table tr td th ul ol header footer nav head style script meta title"

// sameSeparators maps extensions to others that are cut in the same way.
var sameSeparators = map[string]string{
	"cc": "c", "cpp": "c", "mjs": "js", "cjs": "js", "mkd": "md", "htm": "html",
}

// Separators returns where to cut text of a file with this extension (without the dot, in any case), best first. Extensions that are not
// known are plain text. The caller owns the result.
func Separators(ext string) []string {
	ext = strings.ToLower(ext)
	if same := sameSeparators[ext]; same != "" {
		ext = same
	}
	var all []string
	switch {
	case ext == "html":
		for tag := range strings.FieldsSeq(htmlTags) {
			all = append(all, "<"+tag+">")
		}
		return append(all, " ", "")
	case words[ext] != "":
		between := " "
		if strings.Contains(words[ext], ",") {
			between = ","
		}
		for word := range strings.SplitSeq(words[ext], between) {
			all = append(all, "\n"+word+" ")
		}
	default:
		all = append(all, markers[ext]...)
	}
	return append(all, plain...)
}
