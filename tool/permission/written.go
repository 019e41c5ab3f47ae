package permission

import (
	"path/filepath"
	"slices"
	"strings"
)

// writers are commands whose operands are files that they write. They ask; the files are listed for
// the rules that deny, and for guarded files, which no rule with a wildcard covers.
var writers = []string{"chmod", "chown", "cp", "install", "ln", "mkdir", "mv", "patch", "rm", "rmdir", "rsync", "shred", "tee", "touch", "truncate", "unlink"}

// intoDirectory are those that put files below their last operand if that is a directory.
var intoDirectory = []string{"cp", "install", "ln", "mv", "rsync"}

// outputs are the flags of other commands that name a file or directory to write.
var outputs = map[string][]string{
	"curl": {"-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar"},
	"wget": {"-O", "--output-document", "-P", "--directory-prefix", "-o", "--output-file"},
	"sort": {"-o", "--output"}, "tar": {"-C", "--directory", "-f", "--file"}, "unzip": {"-d"}, "tree": {"-o"},
}

// writtenFiles lists the files that a command writes, as far as its words tell.
// Other files that the command may write are guesses: see addGuesses.
func (s *shellAnalyzer) writtenFiles(words []word) (files []word) {
	name := words[0].text
	args := words[1:]
	switch {
	case slices.Contains(writers, name):
		files = operandsOf(args)
		if slices.Contains(intoDirectory, name) {
			operands := files
			files = append(files[:len(files):len(files)], s.targetFiles(operands)...)
			for _, to := range targetDirs(name, args) {
				sources := slices.DeleteFunc(slices.Clone(operands), func(w word) bool { return w.text == to.text })
				files = append(append(files, to), s.targetFiles(append(sources, to))...)
			}
		}
		return append(files, flagValues(args, []string{"-t", "--target-directory"})...)
	case name == "sed" && slices.ContainsFunc(args, editsInPlace):
		return operandsOf(args)
	case name == "dd":
		for _, a := range args {
			if file, ok := strings.CutPrefix(a.text, "of="); ok && a.isPlain() {
				files = append(files, literalWord(file))
			}
		}
	case name == "git":
		return gitWrites(args)
	}
	return append(files, flagValues(args, outputs[name])...)
}

// targetDirs returns the directories into which a program copies or moves because a flag names them, in all forms of
// the flag: -t DIR, -rt DIR, -rtDIR, --target-directory DIR, also with = and abbreviated.
func targetDirs(name string, args []word) (dirs []word) {
	if name == "rsync" {
		return nil // its -t keeps times
	}
	for i, a := range args {
		flag, value, joined := strings.Cut(a.text, "=")
		at := strings.IndexByte(a.text, 't')
		switch {
		case strings.HasPrefix(flag, "--"):
			if len(flag) == 2 || !strings.HasPrefix("--target-directory", flag) {
				continue
			}
		case strings.HasPrefix(flag, "-") && at > 0:
			value = a.text[at+1:]
			joined = value != ""
		default:
			continue
		}
		switch {
		case joined && a.isPlain():
			dirs = append(dirs, literalWord(value))
		case !joined && i+1 < len(args):
			dirs = append(dirs, args[i+1])
		}
	}
	return dirs
}

// operandsOf lists the arguments that are not flags.
// It does not know which flags take the next word as their value, so such values count as operands.
func operandsOf(args []word) (files []word) {
	for _, a := range args {
		if a.text != "" && !a.vague && !a.splits && !strings.HasPrefix(a.text, "-") {
			files = append(files, a)
		}
	}
	return files
}

// flagValues lists the values of flags, in the forms -o FILE, -oFILE and --output=FILE.
func flagValues(args []word, flags []string) (files []word) {
	for i, a := range args {
		for _, flag := range flags {
			long := strings.HasPrefix(flag, "--")
			switch {
			case a.text == flag && i+1 < len(args) && args[i+1].text != "":
				files = append(files, args[i+1])
			case a.isPlain() && long && strings.HasPrefix(a.text, flag+"="):
				files = append(files, literalWord(a.text[len(flag)+1:]))
			case a.isPlain() && !long && len(a.text) > len(flag) && strings.HasPrefix(a.text, flag):
				files = append(files, literalWord(a.text[len(flag):]))
			}
		}
	}
	return files
}

// editsInPlace reports whether a flag of sed writes the files that it reads.
func editsInPlace(a word) bool {
	if long, ok := strings.CutPrefix(a.text, "--"); ok {
		long, _, _ = strings.Cut(long, "=")
		return long != "" && strings.HasPrefix("in-place", long)
	}
	return strings.HasPrefix(a.text, "-") && strings.Contains(a.text, "i")
}

// targetFiles lists the names that the operands get in the last one, if that is a directory.
// With them a rule about a file also counts for "cp x DIR", which writes DIR/x.
func (s *shellAnalyzer) targetFiles(operands []word) (files []word) {
	if len(operands) < 2 || !operands[len(operands)-1].isPlain() {
		return nil
	}
	to := operands[len(operands)-1].text
	if !slices.ContainsFunc(s.dirs, func(dir string) bool { return isDir(joinDir(dir, to)) }) {
		return nil
	}
	for _, from := range operands[:len(operands)-1] {
		if !from.isPlain() {
			continue
		}
		files = append(files, literalWord(filepath.Join(to, filepath.Base(from.text))))
		// "cp -r DIR/. ." copies what is in the directory: its first level is looked at.
		for _, dir := range s.dirs {
			inside, err := filepath.Glob(filepath.Join(escapeGlob(joinDir(dir, from.text)), "*"))
			if err != nil || len(inside) > maxFiles {
				continue
			}
			for _, path := range inside {
				if name := filepath.Base(path); codeDirReason([]string{name}) != "" || codeFileReason(name) != "" {
					files = append(files, literalWord(filepath.Join(to, name)))
				}
			}
		}
	}
	return files
}
