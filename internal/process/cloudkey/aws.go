package cloudkey

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/proc"
)

// AWSKeys are the credentials of an account, or of a role in it.
type AWSKeys struct {
	ID, Secret string
	Token      string // of a session; "": none
}

// AWS finds the credentials of Amazon's cloud: those in the environment, of the profile in the user's files, or of the
// machine. It must be made by [NewAWS], and is safe for concurrent use.
type AWS struct {
	Env      environ.Environ
	Home     string
	Profile  string       // it counts before the environment; "": as the environment says
	Instance bool         // only the metadata service of the container or the machine is asked
	HTTP     *http.Client // for the portal of single sign-on; nil: an ordinary one

	keys *renewer[AWSKeys]
}

// NewAWS returns credentials that are found when they are needed.
func NewAWS(a AWS) *AWS {
	a.keys = newRenewer[AWSKeys]()
	return &a
}

// Keys returns credentials for a request that begins now. It calls learned with the secrets before they are used.
func (a *AWS) Keys(ctx context.Context, learned func(secrets ...string)) (AWSKeys, error) {
	return a.keys.get(ctx, func(ctx context.Context) (AWSKeys, time.Time, error) {
		keys, until, err := a.find(ctx, learned)
		if err == nil {
			learned(keys.Secret, keys.Token)
		}
		return keys, until, err
	})
}

// An awsSource is where credentials are from.
type awsSource struct {
	kind    string // one of the kinds below
	profile string
	keys    section // of the profile
	files   awsFiles
}

const (
	fromEnvironment = "environment"
	fromInstance    = "instance"
	fromKeys        = "keys"
	fromSSO         = "sso"
	fromProcess     = "process"
)

// source returns where the credentials are from, without asking anybody for them. The error says why a file cannot be
// used, or what is missing.
func (a *AWS) source() (awsSource, error) {
	if a.Instance {
		return awsSource{kind: fromInstance}, nil
	}
	_, hasID := a.Env.Lookup("AWS_ACCESS_KEY_ID")
	_, hasSecret := a.Env.Lookup("AWS_SECRET_ACCESS_KEY")
	if a.Profile == "" && hasID && hasSecret {
		return awsSource{kind: fromEnvironment}, nil
	}
	s := awsSource{profile: a.profileName()}
	var err error
	if s.files, err = a.readFiles(); err != nil {
		return s, err
	}
	var found bool
	s.keys, found = s.files.profile(s.profile)
	session := s.keys["sso_session"] != "" || s.keys["sso_start_url"] != ""
	switch {
	case !found:
		return s, fmt.Errorf("there is no profile %q in %s and %s: run aws configure, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", s.profile, s.files.configPath, s.files.credentialsPath)
	case s.keys["role_arn"] != "" || s.keys["login_session"] != "":
		return s, fmt.Errorf("the profile %q takes a role or a login of the console, which raddle does not do itself: make another profile with credential_process = aws configure export-credentials --profile %[1]s, and name that one", s.profile)
	case s.keys["aws_access_key_id"] != "" && s.keys["aws_secret_access_key"] != "":
		s.kind = fromKeys
	case session:
		s.kind = fromSSO
	case s.keys["credential_process"] != "":
		s.kind = fromProcess
	default:
		return s, fmt.Errorf("the profile %q has no credentials: run aws configure, or aws sso login", s.profile)
	}
	return s, nil
}

// profileName returns the name of the profile that counts.
func (a *AWS) profileName() string {
	return cmp.Or(a.Profile, a.Env.Get("AWS_PROFILE"), "default")
}

// Describe says where the credentials are from, for people. It is "" if there are none; the error then says why.
func (a *AWS) Describe() (string, error) {
	s, err := a.source()
	if err != nil {
		return "", err
	}
	switch s.kind {
	case fromEnvironment:
		return "AWS_ACCESS_KEY_ID", nil
	case fromInstance:
		return "the machine's metadata service", nil
	case fromSSO:
		return fmt.Sprintf("single sign-on of the AWS profile %s", s.profile), nil
	case fromProcess:
		return fmt.Sprintf("credential_process of the AWS profile %s", s.profile), nil
	}
	return fmt.Sprintf("the AWS profile %s", s.profile), nil
}

// Advice says what to do about credentials that AWS has refused.
func (a *AWS) Advice() string {
	from, err := a.Describe()
	if err != nil {
		return ""
	}
	text := "The credentials are from " + from + "."
	if strings.HasPrefix(from, "single sign-on") {
		text += " To renew them: " + a.loginCommand() + "."
	}
	return text
}

// loginCommand returns the command that renews a session of single sign-on.
func (a *AWS) loginCommand() string {
	if name := a.profileName(); name != "default" {
		return "aws sso login --profile " + name
	}
	return "aws sso login"
}

// Region returns the region of the environment or of the profile, "" if there is none.
func (a *AWS) Region() string {
	if region, ok := a.Env.LookupFirst([]string{"AWS_REGION", "AWS_DEFAULT_REGION"}); ok {
		return region
	}
	files, _ := a.readFiles() // what is wrong with them is an error of the credentials
	p, _ := files.profile(a.profileName())
	return p["region"]
}

// find returns new credentials, and when they expire.
func (a *AWS) find(ctx context.Context, learned func(secrets ...string)) (AWSKeys, time.Time, error) {
	var never time.Time
	s, err := a.source()
	if err != nil {
		return AWSKeys{}, never, err
	}
	switch s.kind {
	case fromEnvironment:
		return AWSKeys{
			ID:     a.Env.Get("AWS_ACCESS_KEY_ID"),
			Secret: a.Env.Get("AWS_SECRET_ACCESS_KEY"),
			Token:  a.Env.Get("AWS_SESSION_TOKEN"),
		}, never, nil
	case fromInstance:
		return a.askInstance(ctx, learned)
	case fromSSO:
		return a.askPortal(ctx, s, learned)
	case fromProcess:
		return a.runProcess(ctx, s)
	}
	return AWSKeys{
		ID:     s.keys["aws_access_key_id"],
		Secret: s.keys["aws_secret_access_key"],
		Token:  s.keys["aws_session_token"],
	}, never, nil
}

// runProcess runs the program of a profile, without a shell, and reads the credentials that it writes.
func (a *AWS) runProcess(ctx context.Context, s awsSource) (AWSKeys, time.Time, error) {
	var never time.Time
	fail := func(format string, args ...any) (AWSKeys, time.Time, error) {
		return AWSKeys{}, never, fmt.Errorf("credential_process of the AWS profile %q %s", s.profile, fmt.Sprintf(format, args...))
	}
	words, err := splitCommand(s.keys["credential_process"])
	if err != nil {
		return fail("%v", err)
	}
	if err := s.files.checkOwner(s.profile); err != nil {
		return fail("is not run: %v", err)
	}
	env := []string(a.Env)
	if env == nil {
		env = []string{}
	}
	result, err := proc.Run(ctx, proc.Command{
		Path:    words[0],
		Args:    words[1:],
		Env:     env,
		Timeout: askTime,
		Limit:   mostBytes,
	})
	if exit, ok := errors.AsType[*proc.ExitError](err); ok {
		if text := cutLine(string(proc.StripEscapes(result.Stderr))); text != "" {
			return fail("ended with exit code %d: %s", exit.Code, text)
		}
		return fail("ended with exit code %d", exit.Code)
	}
	if err != nil {
		return fail("failed: %v", err)
	}
	var out struct {
		Version                                    int
		AccessKeyID, SecretAccessKey, SessionToken string
		Expiration                                 time.Time
	}
	if json.Unmarshal(result.Stdout, &out) != nil || out.Version != 1 || out.AccessKeyID == "" || out.SecretAccessKey == "" {
		return fail("wrote no credentials in the form that AWS documents")
	}
	if !out.Expiration.IsZero() && !out.Expiration.After(time.Now()) {
		return fail("wrote credentials that expired at %s", out.Expiration.Format(time.RFC3339))
	}
	return AWSKeys{ID: out.AccessKeyID, Secret: out.SecretAccessKey, Token: out.SessionToken}, out.Expiration, nil
}

// splitCommand divides a command into words as a shell does it: quotes join, and a backslash takes the meaning of the
// next character, except on Windows, where it is a part of paths. Nothing else has a meaning.
func splitCommand(line string) (words []string, err error) {
	var word strings.Builder
	inWord := false
	var quote rune
	escaped := false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'' && runtime.GOOS != "windows":
			escaped = true
			inWord = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '"' || r == '\'':
			quote = r
			inWord = true
		case r == ' ' || r == '\t':
			if inWord {
				words = append(words, word.String())
				word.Reset()
			}
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, errors.New("has a quote that does not end")
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 || words[0] == "" {
		return nil, errors.New("names no program")
	}
	return words, nil
}
