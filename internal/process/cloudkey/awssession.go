package cloudkey

import (
	"cmp"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"raddle.dev/internal/base/netplace"
	"raddle.dev/internal/base/plainfile"
)

// askPortal returns the credentials of a role that the user has signed in for. The token of the session is in the cache
// of the AWS command line.
func (a *AWS) askPortal(ctx context.Context, s awsSource, learned func(secrets ...string)) (AWSKeys, time.Time, error) {
	var never time.Time
	session := section{}
	cached := s.keys["sso_start_url"]
	if name := s.keys["sso_session"]; name != "" {
		session = s.files.config["sso-session "+name]
		cached = name
	}
	region := cmp.Or(session["sso_region"], s.keys["sso_region"])
	account := s.keys["sso_account_id"]
	role := s.keys["sso_role_name"]
	if region == "" || account == "" || role == "" {
		return AWSKeys{}, never, fmt.Errorf("the AWS profile %q lacks sso_region, sso_account_id or sso_role_name: run aws configure sso", s.profile)
	}
	token, err := a.readSessionToken(cached)
	if err != nil {
		return AWSKeys{}, never, err
	}
	learned(token)
	base := cmp.Or(a.Env.Get("AWS_ENDPOINT_URL_SSO"), portalURL(region))
	query := url.Values{"role_name": {role}, "account_id": {account}}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(base, "/")+"/federation/credentials?"+query.Encode(), nil)
	if err != nil {
		return AWSKeys{}, never, err
	}
	r.Header.Set("X-Amz-Sso_bearer_token", token)
	var answer struct {
		RoleCredentials struct {
			AccessKeyID, SecretAccessKey, SessionToken string
			Expiration                                 int64 // milliseconds
		}
	}
	status, err := askJSON(a.HTTP, r, &answer)
	switch c := answer.RoleCredentials; {
	case status == http.StatusUnauthorized:
		return AWSKeys{}, never, fmt.Errorf("the session of AWS single sign-on has ended: run %s", a.loginCommand())
	case err != nil:
		return AWSKeys{}, never, fmt.Errorf("single sign-on of the AWS profile %q: %w", s.profile, err)
	case c.AccessKeyID == "" || c.SecretAccessKey == "":
		return AWSKeys{}, never, fmt.Errorf("single sign-on of the AWS profile %q returned no credentials", s.profile)
	default:
		return AWSKeys{
			ID:     c.AccessKeyID,
			Secret: c.SecretAccessKey,
			Token:  c.SessionToken,
		}, time.UnixMilli(c.Expiration), nil
	}
}

func portalURL(region string) string {
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return fmt.Sprintf("https://portal.sso.%s.%s", region, domain)
}

// readSessionToken returns the token that the AWS command line has stored under the name of a session, or under a start
// address.
func (a *AWS) readSessionToken(name string) (string, error) {
	sum := sha1.Sum([]byte(name)) // a name of a file, that AWS has chosen
	path := filepath.Join(a.Home, ".aws", "sso", "cache", hex.EncodeToString(sum[:])+".json")
	text, err := plainfile.Read(path, mostBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no session of AWS single sign-on: run %s", a.loginCommand())
	}
	if err != nil {
		return "", err
	}
	var stored struct{ AccessToken, ExpiresAt string }
	if json.Unmarshal(text, &stored) != nil || stored.AccessToken == "" {
		return "", fmt.Errorf("%s has no token: run %s", path, a.loginCommand())
	}
	until, err := time.Parse(time.RFC3339, strings.Replace(stored.ExpiresAt, "UTC", "Z", 1))
	if err != nil || !until.After(time.Now()) {
		return "", fmt.Errorf("the session of AWS single sign-on has expired: run %s", a.loginCommand())
	}
	return stored.AccessToken, nil
}

const (
	containerHost = "http://169.254.170.2"
	machineHost   = "http://169.254.169.254"
)

// askInstance returns the credentials of the role of this container, or of this machine.
func (a *AWS) askInstance(ctx context.Context, learned func(secrets ...string)) (AWSKeys, time.Time, error) {
	var answer struct {
		AccessKeyID, SecretAccessKey, Token string
		Expiration                          time.Time
	}
	var never time.Time
	r, err := a.instanceRequest(ctx, learned)
	if err == nil {
		_, err = askJSON(directClient(), r, &answer)
	}
	switch {
	case err != nil:
		return AWSKeys{}, never, fmt.Errorf("the metadata service of AWS: %w", err)
	case answer.AccessKeyID == "" || answer.SecretAccessKey == "":
		return AWSKeys{}, never, errors.New("the metadata service of AWS returned no credentials: give the machine or the container a role")
	}
	return AWSKeys{ID: answer.AccessKeyID, Secret: answer.SecretAccessKey, Token: answer.Token}, answer.Expiration, nil
}

// instanceRequest returns the request for the credentials of the container, or of the machine if no variable names a
// container's service.
func (a *AWS) instanceRequest(ctx context.Context, learned func(secrets ...string)) (*http.Request, error) {
	address := a.Env.Get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if relative := a.Env.Get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); relative != "" {
		address = containerHost + "/" + strings.TrimLeft(relative, "/")
	}
	if address == "" {
		return a.machineRequest(ctx, learned)
	}
	if err := checkContainerAddress(address); err != nil {
		return nil, err
	}
	token := a.Env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if path := a.Env.Get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); path != "" {
		text, err := plainfile.Read(path, mostBytes)
		if err != nil {
			return nil, err
		}
		token = strings.TrimSpace(string(text))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err == nil && token != "" {
		learned(token)
		r.Header.Set("Authorization", token)
	}
	return r, err
}

// checkContainerAddress refuses addresses that a token could be read at on its way, as all programs of AWS do.
func checkContainerAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is not an address")
	}
	switch host := u.Hostname(); {
	case u.Scheme == "https", netplace.IsThisMachine(host), host == "169.254.170.2", host == "169.254.170.23", host == "fd00:ec2::23":
		return nil
	}
	return errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or an address of this machine")
}

// machineRequest returns the request for the credentials of a virtual machine, with a token of the session that its
// service wants.
func (a *AWS) machineRequest(ctx context.Context, learned func(secrets ...string)) (*http.Request, error) {
	base := strings.TrimRight(cmp.Or(a.Env.Get("AWS_EC2_METADATA_SERVICE_ENDPOINT"), machineHost), "/")
	client := directClient()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, base+"/latest/api/token", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
	var token, role string
	if _, err := askJSON(client, r, &token); err != nil {
		return nil, err
	}
	learned(token)
	get := func(name string) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/latest/meta-data/iam/security-credentials/"+name, nil)
		if err == nil {
			r.Header.Set("X-Aws-Ec2-Metadata-Token", token)
		}
		return r, err
	}
	if r, err = get(""); err != nil {
		return nil, err
	}
	if _, err := askJSON(client, r, &role); err != nil {
		return nil, err
	}
	role, _, _ = strings.Cut(role, "\n")
	return get(url.PathEscape(role))
}

// directClient returns a client for services of this machine, which no proxy reaches.
func directClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}
