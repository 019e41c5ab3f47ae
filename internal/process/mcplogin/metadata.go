package mcplogin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"raddle.dev/internal/base/pattern"
)

// A resource is what a server says about its protection.
type resource struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`

	scope string // that the server wants
}

// An authority is what an authorization server says about itself.
type authority struct {
	Issuer       string   `json:"issuer"`
	Authorize    string   `json:"authorization_endpoint"`
	Token        string   `json:"token_endpoint"`
	Register     string   `json:"registration_endpoint"`
	Challenges   []string `json:"code_challenge_methods_supported"`
	TokenMethods []string `json:"token_endpoint_auth_methods_supported"`
	SendsIssuer  bool     `json:"authorization_response_iss_parameter_supported"`
}

var (
	metadataOf = pattern.CompileLater(`resource_metadata="([^"]+)"`)
	scopeOf    = pattern.CompileLater(`scope="([^"]*)"`)
)

// hello is a request that a server without protection would answer.
const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"raddle","version":"1"}}}`

// findResource asks a server what protects it.
func (w *web) findResource(ctx context.Context, server *url.URL) (resource, error) {
	header := http.Header{"Accept": {"application/json, text/event-stream"}}
	r, err := w.sendRequest(ctx, http.MethodPost, server.String(), "application/json", hello, header)
	if err != nil {
		return resource{}, err
	}
	if r.status != http.StatusUnauthorized {
		return resource{}, fmt.Errorf("the server answers without asking for a login (status %d)", r.status)
	}
	challenge := strings.Join(r.header.Values("WWW-Authenticate"), ", ")
	var places []string
	if m := metadataOf().FindStringSubmatch(challenge); m != nil {
		places = []string{m[1]}
	} else {
		places = wellKnown(server, "oauth-protected-resource", true)
	}
	for _, place := range places {
		var found resource
		ok, err := w.fetchJSON(ctx, place, &found)
		if err != nil {
			return resource{}, err
		}
		if !ok {
			continue
		}
		if !isPartOf(server, found.Resource) {
			return resource{}, fmt.Errorf("its metadata are about another server: %q", cleanText(found.Resource))
		}
		if len(found.Servers) == 0 {
			return resource{}, errors.New("its metadata name no authorization server")
		}
		if found.scope = strings.Join(found.Scopes, " "); scopeOf().MatchString(challenge) {
			found.scope = scopeOf().FindStringSubmatch(challenge)[1]
		}
		return found, nil
	}
	if len(places) == 1 && metadataOf().MatchString(challenge) {
		return resource{}, errors.New("the metadata that it names are not there")
	}
	// A server of the protocol of 2025-03-26 is its own authorization server.
	origin := url.URL{Scheme: server.Scheme, Host: server.Host}
	return resource{Resource: server.String(), Servers: []string{origin.String()}}, nil
}

// wellKnown returns the addresses at which metadata of a kind are looked for: with the path of an address behind the
// known part, and without it.
func wellKnown(u *url.URL, kind string, root bool) (list []string) {
	base := url.URL{Scheme: u.Scheme, Host: u.Host, Path: "/.well-known/" + kind}
	if path := strings.TrimSuffix(u.Path, "/"); path != "" {
		with := base
		with.Path += path
		list = append(list, with.String())
		if !root {
			return list
		}
	}
	return append(list, base.String())
}

// isPartOf reports whether the name of a resource is that of a server or of what the server is a part of.
func isPartOf(server *url.URL, name string) bool {
	u, err := parseAddress(name)
	if err != nil || u.Scheme != server.Scheme || hostPort(u) != hostPort(server) || u.RawQuery != "" && u.RawQuery != server.RawQuery {
		return false
	}
	path := strings.TrimSuffix(u.Path, "/")
	return path == strings.TrimSuffix(server.Path, "/") || strings.HasPrefix(server.Path, path+"/")
}

func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"https": "443", "http": "80"}[u.Scheme]
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// findAuthority reads what an authorization server says about itself. Its name must be the one by which it was found.
func (w *web) findAuthority(ctx context.Context, issuer string) (authority, error) {
	u, err := parseAddress(issuer)
	if err != nil {
		return authority{}, fmt.Errorf("the authorization server %q is not used: %w", cleanText(issuer), err)
	}
	places := append(wellKnown(u, "oauth-authorization-server", false), wellKnown(u, "openid-configuration", false)...)
	places = append(places, strings.TrimSuffix(u.String(), "/")+"/.well-known/openid-configuration")
	for _, place := range slices.Compact(places) {
		var found authority
		ok, err := w.fetchJSON(ctx, place, &found)
		if err != nil {
			return authority{}, err
		}
		if !ok {
			continue
		}
		if strings.TrimSuffix(found.Issuer, "/") != strings.TrimSuffix(issuer, "/") {
			return authority{}, fmt.Errorf("%s says that it is %q: its metadata are not used", u.Host, cleanText(found.Issuer))
		}
		if !slices.Contains(found.Challenges, "S256") {
			return authority{}, fmt.Errorf("%s does not offer PKCE with S256, without which a code could be stolen", u.Host)
		}
		for _, endpoint := range []string{found.Authorize, found.Token} {
			if _, err := parseAddress(endpoint); err != nil {
				return authority{}, fmt.Errorf("the endpoint %q is not used: %w", cleanText(endpoint), err)
			}
		}
		return found, nil
	}
	return authority{}, fmt.Errorf("the authorization server %s has no metadata", u.Host)
}
