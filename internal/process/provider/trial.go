package provider

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"

	"raddle.dev/flow"
	"raddle.dev/internal/base/failure"
	"raddle.dev/llm"
	"raddle.dev/llm/openai"
)

// A Trial is a model of a client that is called to find out what works.
type Trial struct {
	ID      string // CLIENT:MODEL
	Model   string // the provider's name for it
	Server  string // the profile of a compatible server, otherwise the type of the client
	Host    string // "": the provider's own
	Unknown bool   // the server is compatible with OpenAI's chat completions, and raddle does not know its profile
	Facts   flow.ModelFacts
	Media   []string // what the catalogue says that it takes, such as "image" and "pdf"; nil if unknown
	Schemas bool     // the catalogue says that its answers can be held to a schema

	resolver *Resolver
	client   *client
}

// FindTrial returns the model with an id. A transcript, a list of models and an unknown client are errors.
func FindTrial(r *Resolver, id string) (*Trial, error) {
	if len(flow.SplitModels(id)) > 1 {
		return nil, failure.NewUsage("name one of them", "%s names several models", id)
	}
	c, name := r.findClient(id)
	if strings.HasPrefix(id, "script:") && c == nil || c != nil && c.Type == "script" {
		return nil, failure.NewUsage("name a model of a client; raddle models ls lists them", "%q is a transcript: there is no server to test", id)
	}
	if err := r.CheckRequested(id); err != nil {
		return nil, err
	}
	switch {
	case c == nil:
		return nil, failure.NewUsage("name a model of a client; raddle models ls lists them", "%q is no model that can be called", id)
	case name == "":
		return nil, failure.NewUsage("name the model: "+c.Name+":MODEL", "client %q lists no chat model", c.Name)
	}
	t := &Trial{
		ID:       c.Name + ":" + name,
		Model:    name,
		Server:   c.Type,
		Facts:    r.Facts("", c.Name+":"+name),
		resolver: r,
		client:   c,
	}
	listed := r.known.findModel(c, name)
	t.Media = listed.Media
	t.Schemas = listed.Schemas
	if address, err := url.Parse(c.Base); err == nil {
		t.Host = address.Host
	}
	if c.Type == "openai-compatible" && !c.usesResponses() {
		host := (&url.URL{Host: t.Host}).Hostname()
		t.Server = cmp.Or(c.Profile, openai.ProfileAt(host).Name)
		t.Unknown = t.Server == ""
	}
	return t, nil
}

// Open returns the model, as its client calls it, with the profile of a compatible server unless profile is "". Every
// connection of it goes through watch. It opens none.
func (t *Trial) Open(ctx context.Context, profile string, watch func(http.RoundTripper) http.RoundTripper) (llm.Model, error) {
	c := *t.client
	c.Profile = cmp.Or(profile, c.Profile)
	c.watch = watch
	return t.resolver.openClientModel(ctx, &c, t.Model)
}

// watchClient returns an HTTP client whose connections go through watch; nil changes nothing.
func watchClient(own *http.Client, watch func(http.RoundTripper) http.RoundTripper) *http.Client {
	if watch == nil {
		return own
	}
	through := http.DefaultTransport
	if own != nil {
		through = own.Transport
	}
	return &http.Client{Transport: watch(through)}
}
