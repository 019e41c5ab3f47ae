package cloudkey

import (
	"cmp"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/netplace"
	"raddle.dev/internal/base/plainfile"
)

const (
	googleTokenURL = "https://oauth2.googleapis.com/token"
	googleScope    = "https://www.googleapis.com/auth/cloud-platform"
	googleMetadata = "169.254.169.254"
)

// Google finds the application default credentials of Google's cloud: those of the file that the environment names or
// that gcloud has written, or of the machine. It must be made by [NewGoogle], and is safe for concurrent use.
type Google struct {
	Env      environ.Environ
	Home     string
	Instance bool         // only the metadata service of the machine is asked
	HTTP     *http.Client // for the token service; nil: an ordinary one

	token   *renewer[string]
	project *renewer[string] // of the machine
}

// NewGoogle returns credentials that are found when they are needed.
func NewGoogle(g Google) *Google {
	g.token, g.project = newRenewer[string](), newRenewer[string]()
	return &g
}

// googleFile is a file of credentials. Which members it has depends on its type.
type googleFile struct {
	Type         string `json:"type"` // "authorized_user" or "service_account"
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	RefreshToken string `json:"refresh_token"`
	ClientEmail  string `json:"client_email"`
	PrivateKeyID string `json:"private_key_id"`
	PrivateKey   string `json:"private_key"` // PEM
	TokenURI     string `json:"token_uri"`
	ProjectID    string `json:"project_id"`
	QuotaProject string `json:"quota_project_id"`
}

// path returns the path of the file.
func (g *Google) path() string {
	if path := g.Env.Get("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		return path
	}
	dir := g.Env.Get("CLOUDSDK_CONFIG")
	switch {
	case dir != "":
	case runtime.GOOS == "windows":
		dir = filepath.Join(g.Env.Get("APPDATA"), "gcloud")
	default:
		dir = filepath.Join(g.Home, ".config", "gcloud")
	}
	return filepath.Join(dir, "application_default_credentials.json")
}

// readFile reads the file, and returns an error if raddle cannot use what it has.
func (g *Google) readFile() (googleFile, error) {
	var f googleFile
	path := g.path()
	text, err := plainfile.Read(path, mostBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, fmt.Errorf("there is no file %s: run gcloud auth application-default login, or set GOOGLE_APPLICATION_CREDENTIALS", path)
	case err != nil:
		return f, err
	case json.Unmarshal(text, &f) != nil:
		return f, fmt.Errorf("%s is not a file of credentials", path)
	}
	switch {
	case f.Type == "authorized_user" && f.RefreshToken != "" && f.ClientID != "":
	case f.Type == "service_account" && f.PrivateKey != "" && f.ClientEmail != "":
	case f.Type == "authorized_user" || f.Type == "service_account":
		return f, fmt.Errorf("%s lacks a part of the credentials of type %s", path, f.Type)
	default:
		return f, fmt.Errorf("%s has credentials of type %q, which raddle does not use: set api_key_command to gcloud auth application-default print-access-token", path, cutLine(f.Type))
	}
	f.TokenURI = cmp.Or(f.TokenURI, googleTokenURL)
	return f, checkTokenURL(f.TokenURI)
}

// checkTokenURL refuses services that are not Google's: a file from elsewhere must not send a secret there.
func checkTokenURL(address string) error {
	u, err := url.Parse(address)
	if err == nil {
		host := strings.ToLower(u.Hostname())
		ofGoogle := host == "accounts.google.com" || host == "googleapis.com" || strings.HasSuffix(host, ".googleapis.com")
		if u.Scheme == "https" && ofGoogle || (u.Scheme == "http" || u.Scheme == "https") && netplace.IsThisMachine(host) {
			return nil
		}
	}
	return errors.New("the token_uri of the credentials is not an address of Google")
}

// Describe says where the credentials are from, for people. It is "" if there are none; the error then says why.
func (g *Google) Describe() (string, error) {
	if g.Instance {
		return "the machine's metadata service", nil
	}
	f, err := g.readFile()
	switch {
	case err != nil:
		return "", err
	case g.Env.Get("GOOGLE_APPLICATION_CREDENTIALS") != "":
		return "GOOGLE_APPLICATION_CREDENTIALS (" + f.Type + ")", nil
	}
	return "gcloud (" + f.Type + ")", nil
}

// QuotaProject returns the project that the requests of a user are charged to, "" if the credentials name none.
func (g *Google) QuotaProject() string {
	if g.Instance {
		return ""
	}
	f, _ := g.readFile() // what is wrong with it is an error of the credentials
	return f.QuotaProject
}

// Project returns the project of the environment, of the credentials or of the machine, "" if there is none.
func (g *Google) Project(ctx context.Context) string {
	if project := g.Env.Get("GOOGLE_CLOUD_PROJECT"); project != "" {
		return project
	}
	if !g.Instance {
		f, _ := g.readFile() // what is wrong with it is an error of the credentials
		return cmp.Or(f.QuotaProject, f.ProjectID)
	}
	project, _ := g.project.get(ctx, func(ctx context.Context) (string, time.Time, error) {
		var text string
		err := g.askMetadata(ctx, "project/project-id", &text)
		return text, time.Now().Add(time.Hour), err
	})
	return project
}

// Token returns an access token for a request that begins now. It calls learned with the secrets before they are used.
func (g *Google) Token(ctx context.Context, learned func(secrets ...string)) (string, error) {
	return g.token.get(ctx, func(ctx context.Context) (string, time.Time, error) {
		token, until, err := g.find(ctx, learned)
		if err == nil {
			learned(token)
		}
		return token, until, err
	})
}

// accessToken is the answer of a token service.
type accessToken struct {
	Token   string `json:"access_token"`
	Seconds int    `json:"expires_in"`
}

// find returns a new token, and when it expires.
func (g *Google) find(ctx context.Context, learned func(secrets ...string)) (string, time.Time, error) {
	var never time.Time
	asked := time.Now()
	var answer accessToken
	var err error
	if g.Instance {
		err = g.askMetadata(ctx, "instance/service-accounts/default/token", &answer)
	} else {
		answer, err = g.askTokenService(ctx, asked, learned)
	}
	switch {
	case err != nil:
		return "", never, err
	case answer.Token == "":
		return "", never, errors.New("the token service of Google returned no token")
	}
	return answer.Token, asked.Add(time.Duration(answer.Seconds) * time.Second), nil
}

// askTokenService gets a token for the credentials of the file.
func (g *Google) askTokenService(ctx context.Context, now time.Time, learned func(secrets ...string)) (accessToken, error) {
	var answer accessToken
	f, err := g.readFile()
	if err != nil {
		return answer, err
	}
	form := url.Values{"grant_type": {"refresh_token"}, "client_id": {f.ClientID}, "client_secret": {f.ClientSecret}, "refresh_token": {f.RefreshToken}}
	learned(f.ClientSecret, f.RefreshToken, f.PrivateKey)
	if f.Type == "service_account" {
		assertion, err := f.sign(now)
		if err != nil {
			return answer, fmt.Errorf("the private key in %s: %w", g.path(), err)
		}
		form = url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:jwt-bearer"}, "assertion": {assertion}}
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, f.TokenURI, strings.NewReader(form.Encode()))
	if err != nil {
		return answer, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, err := askJSON(g.HTTP, r, &answer)
	switch {
	case err == nil:
		return answer, nil
	case strings.Contains(err.Error(), "reasonable timeframe"):
		return answer, fmt.Errorf("%w: the clock of this machine is wrong: set it", err)
	case f.Type == "authorized_user" && (status == http.StatusBadRequest || status == http.StatusUnauthorized):
		return answer, fmt.Errorf("%w: run gcloud auth application-default login", err)
	}
	return answer, err
}

// sign returns the signed statement of a service account, for which Google gives a token.
func (f googleFile) sign(now time.Time) (string, error) {
	block, _ := pem.Decode([]byte(f.PrivateKey))
	if block == nil {
		return "", errors.New("it is not in the form PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		if parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes); err != nil {
			return "", errors.New("it cannot be read")
		}
	}
	key, is := parsed.(*rsa.PrivateKey)
	if !is {
		return "", errors.New("it is not an RSA key")
	}
	const lifetime = time.Hour
	encode := func(v any) string {
		data, _ := json.Marshal(v) // maps of texts and numbers
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := encode(map[string]string{"alg": "RS256", "typ": "JWT", "kid": f.PrivateKeyID}) + "." + encode(map[string]any{
		"iss": f.ClientEmail, "scope": googleScope, "aud": f.TokenURI, "iat": now.Unix(), "exp": now.Add(lifetime).Unix(),
	})
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

// askMetadata asks the metadata service of the machine.
func (g *Google) askMetadata(ctx context.Context, name string, v any) error {
	host := cmp.Or(g.Env.Get("GCE_METADATA_HOST"), googleMetadata)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/computeMetadata/v1/"+name, nil)
	if err != nil {
		return err
	}
	r.Header.Set("Metadata-Flavor", "Google")
	if _, err := askJSON(directClient(), r, v); err != nil {
		return fmt.Errorf("the metadata service of Google: %w", err)
	}
	return nil
}
