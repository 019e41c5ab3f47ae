package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"raddle.dev/internal/cloudkey"
	"raddle.dev/internal/config"
	"raddle.dev/internal/environ"
	"raddle.dev/llm"
	"raddle.dev/llm/bedrock"
)

// bedrockKey is the variable of a key of Bedrock, which all programs of AWS know.
const bedrockKey = "AWS_BEARER_TOKEN_BEDROCK"

// A cloudAccess is how the models of a cloud are reached with the credentials that its own programs keep. It is the same for all models and runs.
type cloudAccess struct {
	client  config.Client
	aws     *cloudkey.AWS
	learned func(key string) // called with every secret before it is used; may be nil
}

// newCloudAccess returns the access of a client, nil if it is not one of a cloud.
func newCloudAccess(c config.Client, home string, env environ.Environ) *cloudAccess {
	if c.Type != "bedrock" {
		return nil
	}
	a := &cloudAccess{client: c}
	through, _ := throughProxy(c.Proxy) // the configuration has checked it
	a.aws = cloudkey.NewAWS(cloudkey.AWS{Env: env, Home: home, Profile: c.Profile, Instance: c.Instance, HTTP: through})
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

// describe says where the credentials are from. The error says what is missing.
func (a *cloudAccess) describe() (string, error) {
	from, err := a.aws.Describe()
	if err == nil && a.region() == "" {
		err = errors.New("no region is set: set region of the client, or AWS_REGION")
	}
	return from, err
}

// openBedrock returns a model of a client of Bedrock.
func (c *client) openBedrock(settings bedrock.Config) (llm.Model, error) {
	a := c.cloud
	if settings.Region = a.region(); settings.Region == "" {
		return nil, &llm.Error{Class: llm.Auth, Message: fmt.Sprintf("client %q: no region is set: set region of the client, or AWS_REGION", c.Name)}
	}
	if settings.APIKey == "" {
		settings.Advice = a.aws.Advice
		settings.Credentials = func(ctx context.Context) (bedrock.Credentials, error) {
			keys, err := a.aws.Keys(ctx, a.learn)
			return bedrock.Credentials{KeyID: keys.ID, Secret: keys.Secret, Token: keys.Token}, c.explainCredentials(ctx, err)
		}
	}
	return bedrock.New(settings)
}

// explainCredentials returns the failure of a request that has no credentials.
func (c *client) explainCredentials(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	return &llm.Error{Class: llm.Auth, Err: err, Message: fmt.Sprintf("no credentials of client %q: %v", c.Name, err)}
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
