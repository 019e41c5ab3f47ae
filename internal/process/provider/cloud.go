package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/base/failure"
	"raddle.dev/internal/process/cloudkey"
	"raddle.dev/internal/storage/config"
	"raddle.dev/llm"
	"raddle.dev/llm/anthropic"
	"raddle.dev/llm/bedrock"
	"raddle.dev/llm/gemini"
)

// bedrockKey is the variable of a key of Bedrock, which all programs of AWS know.
const bedrockKey = "AWS_BEARER_TOKEN_BEDROCK"

// A cloudAccess is how the models of a cloud are reached with the credentials that its own programs keep. It is the
// same for all models and runs.
type cloudAccess struct {
	client  config.Client
	env     environ.Environ
	aws     *cloudkey.AWS    // of a client of Bedrock
	google  *cloudkey.Google // of a client of Vertex
	learned func(key string) // called with every secret before it is used; may be nil
}

// newCloudAccess returns the access of a client, nil if it is not one of a cloud.
func newCloudAccess(c config.Client, home string, env environ.Environ) *cloudAccess {
	a := &cloudAccess{client: c, env: env}
	through, _ := throughProxy(c.Proxy) // the configuration has checked it
	switch c.Type {
	case "bedrock":
		a.aws = cloudkey.NewAWS(cloudkey.AWS{
			Env:      env,
			Home:     home,
			Profile:  c.Profile,
			Instance: c.Instance,
			HTTP:     through,
		})
	case "vertex":
		a.google = cloudkey.NewGoogle(cloudkey.Google{Env: env, Home: home, Instance: c.Instance, HTTP: through})
	default:
		return nil
	}
	return a
}

// learn tells the redactor of secrets.
func (a *cloudAccess) learn(secrets ...string) {
	for _, secret := range secrets {
		if a.learned != nil && secret != "" {
			a.learned(secret)
		}
	}
}

// region returns the region of a client of Bedrock, "" if nothing names one.
func (a *cloudAccess) region() string {
	return cmp.Or(a.client.Region, bedrock.RegionOf(a.client.Base), a.aws.Region())
}

// address returns the address of a client of a cloud as people see it, "" if it is not known without asking.
func (a *cloudAccess) address() string {
	switch {
	case a.client.Base != "":
		return a.client.Base
	case a.aws != nil:
		return bedrock.ServiceURL(a.region())
	case a.location() == "" || a.client.Instance && a.client.Project == "":
		return ""
	}
	base, _ := a.vertexBase(context.Background()) // what is missing is said elsewhere
	return base
}

// describe says where the credentials are from. The error says what is missing.
func (a *cloudAccess) describe() (string, error) {
	if a.google != nil {
		from, err := a.google.Describe()
		if err == nil {
			err = a.checkPlace(a.location(), a.client.Instance || a.project(context.Background()) != "")
		}
		return from, err
	}
	from, err := a.aws.Describe()
	if err == nil && a.region() == "" {
		err = errors.New("no region is set: set region of the client, or AWS_REGION")
	}
	return from, err
}

// location returns the location of a client of Vertex, "" if nothing names one.
func (a *cloudAccess) location() string {
	return cmp.Or(a.client.Location, a.env.Get("GOOGLE_CLOUD_LOCATION"))
}

// project returns the project of a client of Vertex, "" if nothing names one.
func (a *cloudAccess) project(ctx context.Context) string {
	return cmp.Or(a.client.Project, a.google.Project(ctx))
}

// checkPlace returns an error if a client of Vertex has no project or no location.
func (a *cloudAccess) checkPlace(location string, hasProject bool) error {
	switch {
	case !hasProject:
		return errors.New("no project is set: set project of the client, or GOOGLE_CLOUD_PROJECT")
	case location == "":
		return errors.New("no location is set: set location of the client, such as global or europe-west4, or GOOGLE_CLOUD_LOCATION")
	}
	return nil
}

// vertexHost returns the address of Vertex for a location. Those of continents have their own form.
func vertexHost(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "eu", "us":
		return "https://aiplatform." + location + ".rep.googleapis.com"
	}
	return "https://" + location + "-aiplatform.googleapis.com"
}

// vertexBase returns the address of a project in a location of Vertex. An address of the client that has projects in it
// is complete.
func (a *cloudAccess) vertexBase(ctx context.Context) (string, error) {
	base := strings.TrimRight(a.client.Base, "/")
	if strings.Contains(base, "/projects/") {
		return base, nil
	}
	project := a.project(ctx)
	location := a.location()
	if err := a.checkPlace(location, project != ""); err != nil {
		return "", err
	}
	return cmp.Or(cutVersion(base), vertexHost(location)) + "/v1/projects/" + url.PathEscape(project) + "/locations/" + location, nil
}

// authorize adds an access token to a request, and the project that a user's requests are charged to.
func (a *cloudAccess) authorize(c *client) func(r *http.Request) ([]string, error) {
	return func(r *http.Request) ([]string, error) {
		token, err := a.google.Token(r.Context(), a.learn)
		if err != nil {
			return nil, c.explainCredentials(r.Context(), err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		if project := a.google.QuotaProject(); project != "" {
			r.Header.Set("X-Goog-User-Project", project)
		}
		return []string{token}, nil
	}
}

// openVertex returns a model of a client of Vertex: one of Google or of Anthropic, by its name.
func openVertex(ctx context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	base, err := c.cloud.vertexBase(ctx)
	if err != nil {
		return nil, &llm.Error{Class: llm.Auth, Message: fmt.Sprintf("client %q: %v", c.Name, err)}
	}
	at.BaseURL = base
	var authorize func(r *http.Request) ([]string, error)
	if c.Key == "" {
		authorize = c.cloud.authorize(c)
	}
	maker, model, named := strings.Cut(name, "/")
	switch {
	case named:
	case strings.HasPrefix(name, "claude"):
		maker = "anthropic"
		model = name
	default:
		maker = "google"
		model = name
	}
	switch maker {
	case "anthropic":
		return anthropic.New(anthropic.Config{
			Model:     model,
			Endpoint:  at,
			Vertex:    true,
			Authorize: authorize,
		})
	case "google":
		return gemini.New(gemini.Config{
			Model:     model,
			Endpoint:  at,
			Vertex:    true,
			Authorize: authorize,
		})
	}
	return nil, failure.NewInvalid("name a client with type openai-compatible and api_base: "+base+"/endpoints/openapi", "client %q: models of %s are not reached with type vertex, which has those of google and anthropic", c.Name, maker)
}

// openBedrock returns a model of a client of Bedrock.
func openBedrock(_ context.Context, c *client, name string, at llm.Endpoint) (llm.Model, error) {
	a := c.cloud
	config := bedrock.Config{
		Model:    name,
		Endpoint: at,
		Region:   a.region(),
	}
	if config.Region == "" {
		return nil, &llm.Error{
			Class:   llm.Auth,
			Message: fmt.Sprintf("client %q: no region is set: set region of the client, or AWS_REGION", c.Name),
		}
	}
	if config.APIKey == "" {
		config.Advice = a.aws.Advice
		config.Credentials = func(ctx context.Context) (bedrock.Credentials, error) {
			keys, err := a.aws.Keys(ctx, a.learn)
			return bedrock.Credentials{
				KeyID:  keys.ID,
				Secret: keys.Secret,
				Token:  keys.Token,
			}, c.explainCredentials(ctx, err)
		}
	}
	return bedrock.New(config)
}

// explainCredentials returns the failure of a request that has no credentials.
func (c *client) explainCredentials(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &llm.Error{Class: llm.Auth, Err: err, Message: fmt.Sprintf("no credentials of client %q: %v", c.Name, err)}
}

// advice says what to do about credentials of Google that were refused; "" for other failures. Those of AWS explain
// themselves.
func (a *cloudAccess) advice(f *llm.Error) string {
	if a == nil || a.google == nil || f.Class != llm.Auth || f.Status == 0 {
		return ""
	}
	from, err := a.google.Describe()
	if err != nil {
		return ""
	}
	return " The credentials are from " + from + "."
}

// DescribeAccess says what a client has to call its models with, as the end of a sentence; "" if it needs nothing.
func (i ClientInfo) DescribeAccess() string {
	switch {
	case i.Key != "":
		return ", key from " + i.Key
	case i.From != "":
		return ", credentials from " + i.From
	}
	return ""
}

// DescribeCloud says where the credentials of a client of a cloud are from, or what is missing; "" for other clients.
func (i ClientInfo) DescribeCloud() string {
	switch {
	case i.Lacks != "":
		return i.Client + " cannot be called: " + i.Lacks
	case i.From != "":
		return i.Client + ": credentials from " + i.From
	}
	return ""
}
