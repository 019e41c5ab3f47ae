package cloudkey

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"raddle.dev/internal/base/plainfile"
)

// A section is a section of a file of AWS's programs: its keys in lower case, and their values.
type section map[string]string

// parseAWSFile reads the sections of a file. Lines that are indented belong to the value before them, which nothing
// here needs.
func parseAWSFile(text string) map[string]section {
	sections := map[string]section{}
	var at section
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		bare := strings.TrimSpace(line)
		switch {
		case bare == "" || bare[0] == '#' || bare[0] == ';':
		case bare[0] == '[':
			name, _, _ := strings.Cut(bare[1:], "]")
			name = strings.Join(strings.Fields(name), " ")
			if at = sections[name]; at == nil {
				at = section{}
				sections[name] = at
			}
		case line[0] == ' ' || line[0] == '\t' || at == nil:
		default:
			key, value, _ := strings.Cut(bare, "=")
			at[strings.ToLower(strings.TrimSpace(key))] = cutAWSComment(strings.TrimSpace(value))
		}
	}
	return sections
}

// cutAWSComment returns a value without the comment after a blank.
func cutAWSComment(value string) string {
	for i, r := range value {
		if (r == '#' || r == ';') && i > 0 && (value[i-1] == ' ' || value[i-1] == '\t') {
			return strings.TrimSpace(value[:i])
		}
	}
	return value
}

// awsFiles are the two files of AWS's programs.
type awsFiles struct {
	config, credentials map[string]section
	configPath          string
	credentialsPath     string
}

// readFiles reads both files. One that is not there is empty.
func (a *AWS) readFiles() (awsFiles, error) {
	f := awsFiles{
		configPath:      a.path("AWS_CONFIG_FILE", "config"),
		credentialsPath: a.path("AWS_SHARED_CREDENTIALS_FILE", "credentials"),
	}
	var err, second error
	f.config, err = readSections(f.configPath)
	f.credentials, second = readSections(f.credentialsPath)
	return f, errors.Join(err, second)
}

// path returns the path of a file that a variable names, or of the one that AWS's programs use without it.
func (a *AWS) path(variable, name string) string {
	path := a.Env.Get(variable)
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(a.Home, rest)
	}
	if path == "" {
		path = filepath.Join(a.Home, ".aws", name)
	}
	return path
}

func readSections(path string) (map[string]section, error) {
	text, err := plainfile.Read(path, mostBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return parseAWSFile(string(text)), err
}

// profile returns the keys of a profile in both files: those of the credentials count first. found reports whether
// there is such a profile.
func (f awsFiles) profile(name string) (p section, found bool) {
	p = section{}
	own, inConfig := f.config["profile "+name]
	if !inConfig && name == "default" {
		own, inConfig = f.config["default"]
	}
	secret, inCredentials := f.credentials[name]
	for _, s := range []section{own, secret} {
		for key, value := range s {
			p[key] = value
		}
	}
	return p, inConfig || inCredentials
}

// checkOwner returns an error if others may write a file that names a program to run.
func (f awsFiles) checkOwner(profile string) error {
	path := f.configPath
	if f.credentials[profile]["credential_process"] != "" {
		path = f.credentialsPath
	}
	return checkPrivate(path)
}
