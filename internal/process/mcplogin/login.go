package mcplogin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/base/loopback"
)

// Patience is how long a person may take to agree.
const Patience = 5 * time.Minute

// A Login gets tokens for one server.
type Login struct {
	Server                 string // the address of the MCP server
	ClientID, ClientSecret string // that the user has registered; empty: raddle registers itself
	Port                   int    // of this machine, for the answer; 0: any
	Show                   func(address string)
	Wait                   time.Duration // for the person; 0: Patience

	web *web // nil: that of Server
}

// A Grant is what a login got, for one server and one issuer.
type Grant struct {
	Server       string    `json:"server"`
	Issuer       string    `json:"issuer"`
	Endpoint     string    `json:"token_endpoint"`
	Resource     string    `json:"resource"`
	ClientID     string    `json:"client_id"`
	ClientSecret string    `json:"client_secret,omitempty"`
	InHeader     bool      `json:"secret_in_header,omitempty"`
	Access       string    `json:"access_token"`
	Refresh      string    `json:"refresh_token,omitempty"`
	Expires      time.Time `json:"expires,omitzero"`
}

// Run waits for the person to agree and returns the tokens. Its errors quote no code and no token.
func (l *Login) Run(ctx context.Context) (Grant, error) {
	server, err := parseAddress(l.Server)
	if err != nil {
		return Grant{}, failure.NewUsage("", "a login to %s is not possible: %v", cleanText(l.Server), err)
	}
	if l.web == nil {
		if l.web, err = newWeb(ctx, server); err != nil {
			return Grant{}, err
		}
	}
	protection, err := l.web.findResource(ctx, server)
	if err != nil {
		return Grant{}, err
	}
	by, err := l.web.findAuthority(ctx, protection.Servers[0])
	if err != nil {
		return Grant{}, err
	}
	listener, err := loopback.Listen(l.Port)
	if err != nil {
		return Grant{}, err
	}
	defer listener.Close()
	back := listener.Address("127.0.0.1")
	g := Grant{
		Server:       l.Server,
		Issuer:       by.Issuer,
		Endpoint:     by.Token,
		Resource:     protection.Resource,
		ClientID:     l.ClientID,
		ClientSecret: l.ClientSecret,
	}
	if g.ClientID == "" {
		if err := l.registerClient(ctx, by, back, &g); err != nil {
			return Grant{}, err
		}
	}
	g.InHeader = g.ClientSecret != "" && (len(by.TokenMethods) == 0 || slices.Contains(by.TokenMethods, "client_secret_basic"))
	verifier := loopback.RandomText()
	page, err := parseAddress(by.Authorize)
	if err != nil {
		return Grant{}, err
	}
	q := page.Query()
	for name, value := range map[string]string{"response_type": "code", "client_id": g.ClientID, "redirect_uri": back, "state": listener.State, "resource": g.Resource,
		"code_challenge": loopback.Challenge(verifier), "code_challenge_method": "S256", "scope": protection.scope} {
		if value != "" {
			q.Set(name, value)
		}
	}
	page.RawQuery = q.Encode()
	l.Show(page.String())
	code, err := l.waitForCode(ctx, listener, by)
	if err != nil {
		return Grant{}, err
	}
	return l.web.redeemGrant(ctx, g, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {back}, "code_verifier": {verifier}})
}

// waitForCode returns the code of the answer, which must come from the authorization server that was asked.
func (l *Login) waitForCode(ctx context.Context, listener *loopback.Listener, by authority) (string, error) {
	wait := l.Wait
	if wait == 0 {
		wait = Patience
	}
	limited, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answer, err := listener.Wait(limited)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return "", failure.NewUsage("try again", "the login was not confirmed within %v", wait)
	}
	if err != nil {
		return "", err
	}
	switch iss := answer.Get("iss"); {
	case iss == "" && by.SendsIssuer, iss != "" && iss != by.Issuer:
		return "", fmt.Errorf("the answer is not from %s, which was asked, but from %q: it is not used", by.Issuer, cleanText(iss))
	case answer.Get("error") != "":
		return "", failure.NewUsage("try again", "the login was refused: %s", cleanText(strings.TrimSpace(answer.Get("error")+" "+answer.Get("error_description"))))
	}
	return answer.Get("code"), nil
}

// registerClient makes raddle known to an authorization server, for one answer at one address.
func (l *Login) registerClient(ctx context.Context, by authority, back string, g *Grant) error {
	if by.Register == "" {
		return failure.NewUsage("register an application there and write its client id into the entry: \"oauth\": {\"client_id\": \"...\"}", "%s does not register programs by itself", by.Issuer)
	}
	body, err := json.Marshal(map[string]any{"client_name": "raddle", "redirect_uris": []string{back}, "grant_types": []string{"authorization_code", "refresh_token"},
		"response_types": []string{"code"}, "token_endpoint_auth_method": "none", "application_type": "native"})
	if err != nil {
		return err
	}
	r, err := l.web.sendRequest(ctx, http.MethodPost, by.Register, "application/json", string(body), nil)
	if err != nil {
		return err
	}
	var made struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if r.status != http.StatusCreated && r.status != http.StatusOK || json.Unmarshal(r.body, &made) != nil || made.ID == "" {
		return fmt.Errorf("%s does not register raddle (status %d%s)", by.Issuer, r.status, errorOf(r.body))
	}
	g.ClientID = made.ID
	g.ClientSecret = made.Secret
	return nil
}

// errorOf returns the reason in an answer, as the end of a text in parentheses.
func errorOf(body []byte) string {
	var e struct {
		Error       string
		Description string `json:"error_description"`
	}
	if json.Unmarshal(body, &e) != nil || e.Error == "" {
		return ""
	}
	return ": " + cleanText(strings.TrimSpace(e.Error+" "+e.Description))
}

// redeemGrant exchanges a code or a refresh token for tokens.
func (w *web) redeemGrant(ctx context.Context, g Grant, form url.Values) (Grant, error) {
	form.Set("resource", g.Resource)
	header := http.Header{}
	if g.InHeader {
		request := http.Request{Header: header}
		request.SetBasicAuth(url.QueryEscape(g.ClientID), url.QueryEscape(g.ClientSecret))
	} else {
		form.Set("client_id", g.ClientID)
		if g.ClientSecret != "" {
			form.Set("client_secret", g.ClientSecret)
		}
	}
	r, err := w.sendRequest(ctx, http.MethodPost, g.Endpoint, "application/x-www-form-urlencoded", form.Encode(), header)
	if err != nil {
		return Grant{}, err
	}
	var got struct {
		Access  string  `json:"access_token"`
		Kind    string  `json:"token_type"`
		Refresh string  `json:"refresh_token"`
		Expires float64 `json:"expires_in"`
	}
	if r.status != http.StatusOK {
		return Grant{}, fmt.Errorf("%s gives no token (status %d%s)", g.Issuer, r.status, errorOf(r.body))
	}
	if json.Unmarshal(r.body, &got) != nil || got.Access == "" || !strings.EqualFold(got.Kind, "bearer") || strings.ContainsFunc(got.Access, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return Grant{}, fmt.Errorf("%s answers without a token that can be used", g.Issuer)
	}
	g.Access = got.Access
	g.Expires = time.Time{}
	if got.Refresh != "" {
		g.Refresh = got.Refresh
	}
	if got.Expires > 0 {
		g.Expires = time.Now().Add(time.Duration(min(got.Expires, 1e9)) * time.Second)
	}
	return g, nil
}

// RenewTokens returns new tokens for a grant. It asks only the endpoint that gave the old ones.
func (g Grant) RenewTokens(ctx context.Context) (Grant, error) {
	server, err := parseAddress(g.Server)
	if err != nil {
		return Grant{}, err
	}
	w, err := newWeb(ctx, server)
	if err != nil {
		return Grant{}, err
	}
	return w.redeemGrant(ctx, g, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {g.Refresh}})
}
