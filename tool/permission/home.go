package permission

import "slices"

// hiddenInHome are the rules about the hidden files of the home directory, where programs keep keys, passwords and
// settings. They ask if no other rule decides, and if the workspace contains the home directory: a person who starts
// raddle there means the documents, not ~/.ssh.
var hiddenInHome = []Rule{
	{tool: "*", kind: reading, pattern: "~/.*"},
	{tool: "*", kind: writing, pattern: "~/.*"},
}

// judgeHome returns why a file of the workspace needs a question because it is, or may hold, a hidden file of the home
// directory; "": it needs none. The names of everything below a directory count as its contents do: they tell which
// keys there are.
func (m matcher) judgeHome(n need) (why string) {
	if n.kind != reading && n.kind != writing || n.guess || n.fallback != Allow || !m.area.holdsHome {
		return ""
	}
	if n.kind == reading && len(n.paths) > 0 && !slices.ContainsFunc(n.paths, func(path string) bool { return !m.area.isReadable(path) }) {
		return ""
	}
	var found matchLevel
	for _, r := range hiddenInHome {
		found = max(found, m.forbidsNeed(r, n))
	}
	switch found {
	case sure:
		return "is hidden in your home directory, where programs keep keys and settings"
	case maybe:
		return "may hold hidden files of your home directory, where programs keep keys and settings"
	}
	return ""
}
