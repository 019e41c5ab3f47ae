package cloudkey

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"raddle.dev/internal/testkit/testneed"
)

// A home is a home directory with files of AWS's programs.
type home struct {
	dir string
	env []string
}

func newHome(t *testing.T, files map[string]string) *home {
	t.Helper()
	h := &home{dir: t.TempDir(), env: []string{"PATH=" + os.Getenv("PATH")}}
	for name, text := range files {
		path := filepath.Join(h.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *home) open(env ...string) *AWS {
	return NewAWS(AWS{Env: append(slices.Clone(h.env), env...), Home: h.dir})
}

// cacheName returns the name of the file that the AWS command line stores a session in.
func cacheName(name string) string {
	sum := sha1.Sum([]byte(name))
	return ".aws/sso/cache/" + hex.EncodeToString(sum[:]) + ".json"
}

func storedSession(token string, until time.Time) string {
	return fmt.Sprintf(`{"startUrl":"https://x/start","region":"eu-west-1","accessToken":%q,"expiresAt":%q}`, token, until.UTC().Format("2006-01-02T15:04:05Z"))
}

// startAWS starts a portal of single sign-on, and a metadata service.
func startAWS(t *testing.T) (portal, metadata *httptest.Server) {
	t.Helper()
	portal = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Amz-Sso_bearer_token") != "sso-token-1" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"message":"Session token not found or invalid"}`)
			return
		}
		if r.URL.Path != "/federation/credentials" || r.URL.Query().Get("role_name") != "Reader" || r.URL.Query().Get("account_id") != "123456789012" {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"message":"No access"}`)
			return
		}
		fmt.Fprintf(w, `{"roleCredentials":{"accessKeyId":"SSOID","secretAccessKey":"sso-secret","sessionToken":"sso-session","expiration":%d}}`, time.Now().Add(time.Hour).UnixMilli())
	}))
	t.Cleanup(portal.Close)
	metadata = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := fmt.Sprintf(`{"Code":"Success","AccessKeyId":"IID","SecretAccessKey":"i-secret","Token":"i-token","Expiration":%q}`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
		switch {
		case r.URL.Path == "/container" && r.Header.Get("Authorization") == "container-token":
			fmt.Fprint(w, answer)
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut && r.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds") != "":
			fmt.Fprint(w, "imds-token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "imds-token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			fmt.Fprint(w, "my-role\n")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/my-role":
			fmt.Fprint(w, answer)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(metadata.Close)
	return portal, metadata
}

// newAWSHome returns a home directory with a profile of each kind.
func newAWSHome(t *testing.T) *home {
	t.Helper()
	return newHome(t, map[string]string{
		".aws/credentials": "[default]\naws_access_key_id = FILEID\naws_secret_access_key = file-secret\n\n[work]\naws_access_key_id=WORKID\naws_secret_access_key=work-secret ; of the work\naws_session_token=work-token\n",
		".aws/config": "[default]\nregion = eu-north-1\n[profile work]\nregion=eu-west-3\ns3 =\n    region = nested\n[profile new]\nsso_session = corp\nsso_account_id = 123456789012\nsso_role_name = Reader\n" +
			"[sso-session corp]\nsso_region = eu-west-1\nsso_start_url = https://x/start\n[profile old]\nsso_start_url = https://old/start\nsso_region = eu-west-1\nsso_account_id = 123456789012\nsso_role_name = Reader\n" +
			"[profile other]\nsso_start_url = https://old/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Admin\n" +
			"[profile gone]\nsso_start_url = https://gone/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Reader\n" +
			"[profile late]\nsso_start_url = https://late/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Reader\n" +
			"[profile ended]\nsso_start_url = https://ended/start\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = Reader\n" +
			"[profile program]\ncredential_process = sh -c \"echo '{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"PID\\\",\\\"SecretAccessKey\\\":\\\"p-secret\\\",\\\"SessionToken\\\":\\\"p-token\\\"}'\"\n" +
			"[profile broken]\ncredential_process = sh -c 'echo no session >&2; exit 3'\n[profile odd]\ncredential_process = sh -c 'echo hello $HOME'\n" +
			"[profile role]\nrole_arn = arn:x\nsource_profile = work\n[profile empty]\nregion = x\n",
		cacheName("corp"):                storedSession("sso-token-1", time.Now().Add(time.Hour)),
		cacheName("https://old/start"):   storedSession("sso-token-1", time.Now().Add(time.Hour)),
		cacheName("https://late/start"):  storedSession("sso-token-1", time.Now().Add(-time.Hour)),
		cacheName("https://ended/start"): storedSession("sso-token-2", time.Now().Add(time.Hour)),
	})
}

// Each source is found, in the order that AWS's programs have, and its secrets are known before they are used.
func TestAWSSources(t *testing.T) {
	testneed.RequirePrograms(t, "sh")
	portal, metadata := startAWS(t)
	h := newAWSHome(t)
	sso := "AWS_ENDPOINT_URL_SSO=" + portal.URL
	for _, c := range []struct {
		name string
		env  []string
		set  func(a *AWS)
		want string // id, secret and token, or the error
		from string
	}{
		{name: "environment", env: []string{"AWS_ACCESS_KEY_ID=EID", "AWS_SECRET_ACCESS_KEY=e-secret", "AWS_SESSION_TOKEN=e-token", "AWS_PROFILE=work"}, want: "EID e-secret e-token", from: "AWS_ACCESS_KEY_ID"},
		{name: "half of it", env: []string{"AWS_ACCESS_KEY_ID=EID"}, want: "FILEID file-secret ", from: "the AWS profile default"},
		{name: "named profile", env: []string{"AWS_PROFILE=work"}, want: "WORKID work-secret work-token", from: "the AWS profile work"},
		{name: "profile of the client", env: []string{"AWS_ACCESS_KEY_ID=EID", "AWS_SECRET_ACCESS_KEY=e-secret"}, set: func(a *AWS) { a.Profile = "work" }, want: "WORKID work-secret work-token", from: "the AWS profile work"},
		{name: "session", env: []string{"AWS_PROFILE=new", sso}, want: "SSOID sso-secret sso-session", from: "single sign-on of the AWS profile new"},
		{name: "session of the old form", env: []string{"AWS_PROFILE=old", sso}, want: "SSOID sso-secret sso-session", from: "single sign-on of the AWS profile old"},
		{name: "role of others", env: []string{"AWS_PROFILE=other", sso}, want: "answers with status 403: No access", from: "single sign-on of the AWS profile other"},
		{name: "no session", env: []string{"AWS_PROFILE=gone", sso}, want: "there is no session of AWS single sign-on: run aws sso login --profile gone", from: "single sign-on of the AWS profile gone"},
		{name: "session that expired", env: []string{"AWS_PROFILE=late", sso}, want: "has expired: run aws sso login --profile late", from: "single sign-on of the AWS profile late"},
		{name: "session that was ended", env: []string{"AWS_PROFILE=ended", sso}, want: "has ended: run aws sso login --profile ended", from: "single sign-on of the AWS profile ended"},
		{name: "program", env: []string{"AWS_PROFILE=program"}, want: "PID p-secret p-token", from: "credential_process of the AWS profile program"},
		{name: "program that fails", env: []string{"AWS_PROFILE=broken"}, want: "ended with exit code 3: no session", from: "credential_process of the AWS profile broken"},
		{name: "program that writes something else", env: []string{"AWS_PROFILE=odd"}, want: "wrote no credentials", from: "credential_process of the AWS profile odd"},
		{name: "role", env: []string{"AWS_PROFILE=role"}, want: "credential_process = aws configure export-credentials --profile role"},
		{name: "empty profile", env: []string{"AWS_PROFILE=empty"}, want: `the profile "empty" has no credentials`},
		{name: "no such profile", env: []string{"AWS_PROFILE=none"}, want: `there is no profile "none"`},
		{name: "machine", env: []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT=" + metadata.URL, "AWS_ACCESS_KEY_ID=EID", "AWS_SECRET_ACCESS_KEY=e-secret"}, set: func(a *AWS) { a.Instance = true }, want: "IID i-secret i-token", from: "the machine's metadata service"},
		{name: "container", env: []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=" + metadata.URL + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN=container-token"}, set: func(a *AWS) { a.Instance = true }, want: "IID i-secret i-token", from: "the machine's metadata service"},
		{name: "container elsewhere", env: []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI=http://example.org/x"}, set: func(a *AWS) { a.Instance = true }, want: "must be https", from: "the machine's metadata service"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := h.open(c.env...)
			if c.set != nil {
				c.set(a)
			}
			var learned []string
			keys, err := a.Keys(t.Context(), func(secrets ...string) { learned = append(learned, secrets...) })
			got := keys.ID + " " + keys.Secret + " " + keys.Token
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
			if err == nil && (!slices.Contains(learned, keys.Secret) || !slices.Contains(learned, keys.Token)) {
				t.Errorf("secrets were not learned: %q", learned)
			}
			if from, _ := a.Describe(); from != c.from {
				t.Errorf("from %q, want %q", from, c.from)
			}
			for _, secret := range []string{"-secret", "-token-"} {
				if err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
		})
	}
	for env, want := range map[string]string{"": "eu-north-1", "AWS_PROFILE=work": "eu-west-3", "AWS_REGION=us-east-1": "us-east-1", "AWS_DEFAULT_REGION=us-east-2": "us-east-2", "AWS_PROFILE=old": ""} {
		if got := h.open(env).Region(); got != want {
			t.Errorf("%q: region %q, want %q", env, got, want)
		}
	}
	elsewhere := newHome(t, map[string]string{"c": "[x]\naws_access_key_id=XID\naws_secret_access_key=x-secret\n"})
	a := elsewhere.open("AWS_SHARED_CREDENTIALS_FILE=~/c", "AWS_CONFIG_FILE="+filepath.Join(elsewhere.dir, "none"), "AWS_PROFILE=x")
	if keys, err := a.Keys(t.Context(), func(...string) {}); err != nil || keys.ID != "XID" {
		t.Errorf("files elsewhere: %+v, %v", keys, err)
	}
}

// Credentials are renewed before they expire, by one caller for all; those that cannot be renewed are used until they expire.
func TestRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRenewer[int]()
		var calls atomic.Int32
		fails := false
		find := func(context.Context) (int, time.Time, error) {
			if fails {
				return 0, time.Time{}, fmt.Errorf("no")
			}
			time.Sleep(time.Second)
			return int(calls.Add(1)), time.Now().Add(time.Hour), nil
		}
		want := func(what string, value int, ok bool) {
			t.Helper()
			if got, err := r.get(t.Context(), find); got != value || (err == nil) != ok {
				t.Errorf("%s: %d, %v, want %d", what, got, err, value)
			}
		}
		for range 9 {
			go func() { _, _ = r.get(t.Context(), find) }()
		}
		synctest.Wait()
		want("at first", 1, true)
		time.Sleep(time.Hour - margin - time.Minute)
		want("before the margin", 1, true)
		time.Sleep(2 * time.Minute)
		want("in the margin", 2, true)
		time.Sleep(time.Hour - time.Minute)
		fails = true
		want("not renewed", 2, true)
		time.Sleep(2 * time.Minute)
		want("expired", 0, false)
		fails = false
		want("again", 3, true)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(2 * time.Hour)
		if _, err := r.get(ctx, func(ctx context.Context) (int, time.Time, error) { return 0, time.Time{}, ctx.Err() }); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	})
}

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string]string{
		`a b  c`: "a|b|c", `"a b" 'c "d"' e\ f`: `a b|c "d"|e f`, `a ""`: "a|", `$(a) $b`: "$(a)|$b", "": "error", `"a`: "error", `""`: "error",
	} {
		words, err := splitCommand(line)
		got := strings.Join(words, "|")
		if err != nil {
			got = "error"
		}
		if got != want && !(strings.Contains(line, `\`) && os.PathSeparator == '\\') {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
