package cloudkey

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// startGoogle starts a token service that checks what it gets, and a metadata service.
func startGoogle(t *testing.T, key *rsa.PublicKey) *httptest.Server {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		refuse := func(kind, text string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"error":%q,"error_description":%q}`, kind, text)
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/computeMetadata/") && r.Header.Get("Metadata-Flavor") != "Google":
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/computeMetadata/v1/project/project-id":
			fmt.Fprint(w, "machine-project")
		case r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token":
			fmt.Fprint(w, `{"access_token":"token-of-machine","expires_in":3599,"token_type":"Bearer"}`)
		case r.FormValue("grant_type") == "refresh_token":
			if r.FormValue("refresh_token") != "refresh-1" || r.FormValue("client_id") != "id" || r.FormValue("client_secret") != "client-secret" {
				refuse("invalid_grant", "reauth related error (invalid_rapt)")
				return
			}
			fmt.Fprint(w, `{"access_token":"token-of-user","expires_in":3599}`)
		case r.FormValue("grant_type") == "urn:ietf:params:oauth:grant-type:jwt-bearer":
			if reason := checkStatement(r.FormValue("assertion"), key, s.URL+"/token"); reason != "" {
				refuse("invalid_grant", reason)
				return
			}
			fmt.Fprint(w, `{"access_token":"token-of-account","expires_in":3599}`)
		default:
			refuse("unsupported_grant_type", "what is this")
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// checkStatement returns why Google would refuse the statement of a service account.
func checkStatement(text string, key *rsa.PublicKey, audience string) string {
	parts := strings.Split(text, ".")
	if len(parts) != 3 {
		return "Invalid JWT"
	}
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	if err != nil || rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], signature) != nil {
		return "Invalid JWT Signature."
	}
	var claims struct {
		Iss, Scope, Aud string
		Iat, Exp        int64
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &claims) != nil || claims.Aud != audience || claims.Iss != "robot@x" || claims.Scope != googleScope {
		return "Invalid JWT: " + string(data)
	}
	if now := time.Now().Unix(); claims.Iat > now || claims.Exp <= now || claims.Exp-claims.Iat > 3600 {
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe"
	}
	return ""
}

// Each source of Google's credentials is found, and its secrets are known before they are used.
func TestGoogleSources(t *testing.T) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s := startGoogle(t, &key.PublicKey)
	private, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	user := `{"type":"authorized_user","client_id":"id","client_secret":"client-secret","refresh_token":"refresh-1","quota_project_id":"my-project","token_uri":"` + s.URL + `/token"}`
	account := fmt.Sprintf(`{"type":"service_account","client_email":"robot@x","private_key_id":"k1","private_key":%s,"project_id":"robot-project","token_uri":"%s/token"}`, private, s.URL)
	h := newHome(t, map[string]string{
		".config/gcloud/application_default_credentials.json": user,
		"account.json":   account,
		"late.json":      strings.Replace(user, "refresh-1", "refresh-2", 1),
		"elsewhere.json": strings.Replace(user, s.URL, "https://evil.example", 1),
		"plain.json":     strings.Replace(user, s.URL, "http://oauth2.googleapis.com", 1),
		"external.json":  `{"type":"external_account"}`,
		"half.json":      `{"type":"authorized_user","client_id":"x"}`,
		"broken.json":    `{`,
		"nokey.json":     `{"type":"service_account","client_email":"robot@x","private_key":"nothing"}`,
	})
	named := func(name string) string { return "GOOGLE_APPLICATION_CREDENTIALS=" + filepath.Join(h.dir, name) }
	for _, c := range []struct {
		name, env     string
		instance      bool
		want          string // the token, or the error
		from, project string
	}{
		{name: "gcloud", want: "token-of-user", from: "gcloud (authorized_user)", project: "my-project"},
		{name: "service account", env: named("account.json"), want: "token-of-account", from: "GOOGLE_APPLICATION_CREDENTIALS (service_account)", project: "robot-project"},
		{name: "machine", env: "GCE_METADATA_HOST=" + strings.TrimPrefix(s.URL, "http://"), instance: true, want: "token-of-machine", from: "the machine's metadata service", project: "machine-project"},
		{name: "project of the environment", env: "GOOGLE_CLOUD_PROJECT=env-project", want: "token-of-user", from: "gcloud (authorized_user)", project: "env-project"},
		{name: "ended", env: named("late.json"), want: "reauth related error (invalid_rapt): run gcloud auth application-default login", from: "GOOGLE_APPLICATION_CREDENTIALS (authorized_user)", project: "my-project"},
		{name: "token service of others", env: named("elsewhere.json"), want: "is not an address of Google", project: "my-project"},
		{name: "token service without encryption", env: named("plain.json"), want: "is not an address of Google", project: "my-project"},
		{name: "external account", env: named("external.json"), want: "api_key_command"},
		{name: "half", env: named("half.json"), want: "lacks a part"},
		{name: "no JSON", env: named("broken.json"), want: "is not a file of credentials"},
		{name: "no key", env: named("nokey.json"), want: "it is not in the form PEM", from: "GOOGLE_APPLICATION_CREDENTIALS (service_account)"},
		{name: "no file", env: named("none.json"), want: "run gcloud auth application-default login"},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewGoogle(Google{Env: append(slices.Clone(h.env), c.env), Home: h.dir, Instance: c.instance})
			if c.env == "" || strings.HasPrefix(c.env, "GOOGLE_CLOUD") { // also where gcloud keeps its files on Windows
				g.Env = append(g.Env, "CLOUDSDK_CONFIG="+filepath.Join(h.dir, ".config", "gcloud"))
			}
			var learned []string
			token, err := g.Token(t.Context(), func(secrets ...string) { learned = append(learned, secrets...) })
			if err != nil && !strings.Contains(err.Error(), c.want) || err == nil && token != c.want {
				t.Errorf("%q, %v, want %q", token, err, c.want)
			}
			if err == nil && !slices.Contains(learned, token) {
				t.Errorf("learned %q", learned)
			}
			if err != nil && (strings.Contains(err.Error(), "refresh-") || strings.Contains(err.Error(), "client-secret")) {
				t.Errorf("the error shows a secret: %v", err)
			}
			if from, _ := g.Describe(); from != c.from {
				t.Errorf("from %q, want %q", from, c.from)
			}
			if project := g.Project(t.Context()); project != c.project {
				t.Errorf("project %q, want %q", project, c.project)
			}
		})
	}
}
