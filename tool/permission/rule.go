package permission

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/bmatcuk/doublestar/v4"
	"go.yaml.in/yaml/v4"
	"raddle.dev/internal/base/strictyaml"
	"raddle.dev/internal/base/wording"
	"raddle.dev/tool"
)

// A needKind is one kind of thing that a call needs.
type needKind string

const (
	theCall needKind = "call"    // the call of the tool itself
	command needKind = "command" // a simple command of a shell text
	reading needKind = "read"    // a file or directory that is read
	writing needKind = "write"   // a file or directory that is written, made or removed
	network needKind = "host"    // a host that the call connects to
)

// A Rule is a pattern of calls. It is written in one of the forms
//
//	fs_write                       every call of a tool; * is any text in the name
//	fs_write(src/**)               calls of a tool where what they need matches
//	execute_command(git status *)
//	fetch_url_via_curl(https://api.example.com/*)
//	mcp_invoke_tracker(tool=list_*, project=web)
//	any write(/tmp/**)             what calls of any tool need: command, read, write or host
//
// In a command, each word of the pattern matches one word, in which * is any text; a * as the last
// word matches any number of further words, also none. Inside quotes and after a backslash, * is
// only a star. A path is relative to the workspace, absolute, or begins with ~/; *, ?, [a-z], {a,b}
// and ** are what they are in shells, and dir/** includes dir. A host is a name such as
// *.example.com, or the beginning of a URL with ://. For a tool that does not declare what it
// touches, the pattern lists arguments.
//
// The rule of an answer may end with " @" and a digest: it covers a call only as long as the files that a command runs,
// or the definition of a server's tool, are what they were when the answer was given.
type Rule struct {
	Text   string // as it was written
	Source string // where, as "file:line:col"; empty: nowhere in a file

	pos strictyaml.Pos // Source

	tool    string   // pattern of the tool's name
	kind    needKind // of a rule for any tool; empty: all
	pattern string   // between the parentheses
	bare    bool     // there are no parentheses
	words   []string // the pattern as words of a command: see split
	broken  bool     // the words cannot be separated, because of an unclosed quote
	bound   string   // the digest of what an answer allowed: see need.content; empty: the rule is about names only
}

// dependsOnArguments reports whether the rule is about a tool with a name, or any tool, and about only some of its
// calls.
func (r Rule) dependsOnArguments(name string) bool {
	return !r.bare && (r.tool == "" || matchesWildcard(r.tool, name))
}

// nameText is what a tool's name in a rule may look like.
var nameText = compileLater(`^[A-Za-z0-9_.*-]+$`)

// boundText is what the rule of an answer looks like that is bound to a content.
var boundText = compileLater(`(?s)^(.*[^ ]) @([0-9a-f]{32})$`)

// ParseRule reads a rule. An error says what is wrong with the text.
func ParseRule(text string) (Rule, error) {
	r := Rule{Text: strings.TrimSpace(text), bare: true}
	head := r.Text
	if m := boundText().FindStringSubmatch(head); m != nil {
		head = m[1]
		r.bound = m[2]
	}
	if r.bound == "" && strings.Contains(head, ") @") && !strings.HasSuffix(head, ")") {
		return Rule{}, fmt.Errorf("rule %q: behind @ there must be the digest that an answer has saved, 32 digits from 0 to f", text)
	}
	if i := strings.IndexByte(head, '('); i >= 0 {
		if !strings.HasSuffix(head, ")") {
			return Rule{}, fmt.Errorf("rule %q: the closing ) is missing", text)
		}
		head, r.pattern, r.bare = head[:i], strings.TrimSpace(head[i+1:len(head)-1]), false
	}
	head = strings.TrimSpace(head)
	if kind, ok := strings.CutPrefix(head, "any "); ok {
		return r.forAny(strings.TrimSpace(kind))
	}
	if !nameText().MatchString(head) {
		if head == "" {
			return Rule{}, fmt.Errorf("rule %q: the name of a tool is missing", text)
		}
		return Rule{}, fmt.Errorf("rule %q: %q is not a name of a tool: letters, digits, _, -, . and * only", text, head)
	}
	r.tool = head
	return r.parsePattern()
}

// forAny changes the rule into one for the needs of all tools.
func (r Rule) forAny(kind string) (Rule, error) {
	if !slices.Contains(ruleKinds(), kind) {
		hint := ""
		if near := wording.FindNearest(kind, ruleKinds()); near != "" {
			hint = "; did you mean " + near + "?"
		}
		return Rule{}, fmt.Errorf("rule %q: any must be followed by one of %s, not %q%s", r.Text, strings.Join(ruleKinds(), ", "), kind, hint)
	}
	r.tool = "*"
	r.kind = needKind(kind)
	if r.kind == reading || r.kind == writing {
		if !r.bare && !doublestar.ValidatePattern(r.pattern) {
			return Rule{}, fmt.Errorf("rule %q: %q is not a pattern of paths: a bracket or a brace is not closed", r.Text, r.pattern)
		}
	}
	return r.parsePattern()
}

// parsePattern reads what is between the parentheses.
func (r Rule) parsePattern() (Rule, error) {
	if r.bare {
		return r, nil
	}
	if r.pattern == "" {
		return Rule{}, fmt.Errorf("rule %q: there is nothing between the parentheses: leave them out to mean every call", r.Text)
	}
	words, err := splitPattern(r.pattern)
	if err != nil && r.kind == command {
		return Rule{}, fmt.Errorf("rule %q: %w", r.Text, err)
	}
	r.words = words
	r.broken = err != nil
	return r, nil
}

// splitPattern takes a pattern of a command apart at blanks. In the words, a * is any
// text and a \ takes the meaning from the next character; quotes are gone.
func splitPattern(pattern string) ([]string, error) {
	var words []string
	var b strings.Builder
	open := rune(0)
	begun := false
	escaped := false
	literal := func(c rune) {
		if c == '*' || c == '\\' {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	for _, c := range pattern {
		switch {
		case escaped:
			literal(c)
			escaped = false
		case c == '\\' && open != '\'':
			escaped = true
			begun = true
		case open != 0 && c == open:
			open = 0
		case open != 0:
			literal(c)
		case c == '\'' || c == '"':
			open = c
			begun = true
		case c == ' ' || c == '\t' || c == '\n':
			if begun {
				words = append(words, b.String())
				begun = false
				b.Reset()
			}
		default:
			b.WriteRune(c)
			begun = true
		}
	}
	if open != 0 || escaped {
		return nil, errors.New("a quote is not closed, or the text ends with a backslash")
	}
	if begun {
		words = append(words, b.String())
	}
	return words, nil
}

// matchesWildcard reports whether a text matches a pattern in which * is any text and \
// takes the meaning from the next character.
func matchesWildcard(pattern, text string) bool {
	// star and mark are the positions to continue from if the text after the last * does not match.
	p := 0
	t := 0
	star := -1
	mark := 0
	for t < len(text) {
		if p < len(pattern) && pattern[p] == '*' {
			star = p
			mark = t
			p++
			continue
		}
		if p < len(pattern) {
			next := p
			if pattern[p] == '\\' && p+1 < len(pattern) {
				next++
			}
			if pattern[next] == text[t] {
				p = next + 1
				t = t + 1
				continue
			}
		}
		if star < 0 {
			return false
		}
		mark++
		p = star + 1
		t = mark
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Rules are the rules of one file, each list in the order of the file. The order does not matter:
// deny beats ask, and ask beats allow.
type Rules struct {
	Allow, Ask, Deny []Rule
}

// WithoutAllow returns the rules without those that allow: the part that counts before a person has
// consented to the file.
func (r Rules) WithoutAllow() Rules { return Rules{Ask: r.Ask, Deny: r.Deny} }

// An Error says that rules cannot be used, and lists everything that is wrong with them.
type Error struct{ Findings []strictyaml.Finding }

// Error lists the findings, one on each line.
func (e *Error) Error() string {
	return "the permission rules have faults:\n" + strictyaml.JoinFindings(e.Findings, "  ")
}

// ListFindings returns the findings.
func (e *Error) ListFindings() []strictyaml.Finding { return e.Findings }

// LoadRules reads the text of a file that holds nothing but rules: the lists allow,
// ask and deny. The file's name is for messages. What is wrong with the file is an *Error.
func LoadRules(file string, text []byte) (Rules, error) {
	doc := strictyaml.Read(file, text)
	var rules Rules
	if doc.Root != nil {
		rules = ReadRules(doc, doc.Root)
	}
	if len(doc.List) > 0 {
		strictyaml.SortFindings(doc.List)
		return Rules{}, &Error{Findings: doc.List}
	}
	return rules, nil
}

// ReadRules takes the rules from a part of a document, such as the value of
// permissions in a configuration. What is wrong with them is added to the findings of the
// document.
func ReadRules(doc *strictyaml.Document, node *yaml.Node) (rules Rules) {
	lists := map[string]*[]Rule{"allow": &rules.Allow, "ask": &rules.Ask, "deny": &rules.Deny}
	doc.ReadKeys(node, "permissions", []string{"allow", "ask", "deny"}, func(key string, value *yaml.Node) {
		*lists[key] = readList(doc, key, value)
	})
	return rules
}

func readList(doc *strictyaml.Document, key string, n *yaml.Node) (rules []Rule) {
	for _, item := range doc.ReadItems(n, key) {
		if item.Kind != yaml.ScalarNode {
			doc.ReportFault(item, "", "a rule is a text such as fs_write(src/**); one with ': ' or a leading * needs quotes")
			continue
		}
		rule, err := ParseRule(item.Value)
		if err != nil {
			doc.ReportFault(item, "", "%v", err)
			continue
		}
		rule.pos = strictyaml.Pos{File: doc.Path, Line: item.Line, Col: item.Column}
		rule.Source = rule.pos.String()
		rules = append(rules, rule)
	}
	return rules
}

// CheckTools returns what is wrong with rules once the tools are known, as an *Error with the place
// of each rule. A rule with a pattern of files, commands or hosts can never match a call of a tool
// that declares nothing about what it touches, so such a rule would protect nothing. Rules about
// arguments, such as create_issue(project=web), need no declaration. A rule for a name that no tool
// has is not an error. If two tools have the same name, the later one counts.
func CheckTools(rules []Rules, tools []tool.Tool) error {
	declares := map[string]bool{}
	for _, t := range tools {
		declares[t.Name] = t.Touches != nil
	}
	var faults []strictyaml.Finding
	for _, list := range rules {
		for _, some := range [][]Rule{list.Allow, list.Ask, list.Deny} {
			for _, r := range some {
				if name := r.toolNeverMatched(declares); name != "" {
					faults = append(faults, strictyaml.Finding{Severity: strictyaml.SeverityError, Class: strictyaml.ClassValidate, Code: "rule-in-vain", Pos: r.pos, Message: fmt.Sprintf(
						"rule %q can never match: the tool %s does not declare which files, commands or hosts it touches. "+
							"Use %s without a pattern, or compare its arguments: %s(NAME=PATTERN)", r.Text, name, r.tool, r.tool)})
				}
			}
		}
	}
	if len(faults) > 0 {
		return &Error{Findings: faults}
	}
	return nil
}

// toolNeverMatched returns the name of a tool that the rule means although its pattern cannot match:
// none of the tools that it means declares what it touches. It returns "" if the rule is fine.
func (r Rule) toolNeverMatched(declares map[string]bool) (name string) {
	if r.bare || r.kind != "" || r.pattern == "*" || argumentsText().MatchString(r.pattern) && !strings.Contains(r.pattern, "://") {
		return ""
	}
	for tool, touches := range declares {
		switch {
		case !matchesWildcard(r.tool, tool):
		case touches:
			return ""
		case name == "" || tool < name:
			name = tool
		}
	}
	return name
}

// compileLater returns a function that compiles the expression when it is first called. Most processes judge no shell
// text, and compiling all expressions of this package was a tenth of the time in which the program starts. It panics if
// the expression is not valid.
func compileLater(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
