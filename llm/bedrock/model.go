// Package bedrock implements llm.Model for the Converse API of Amazon Bedrock, which serves models of several makers.
//
//	m, err := bedrock.New(bedrock.Config{
//		Model:    "us.anthropic.claude-sonnet-4-6",
//		Region:   "us-east-1",
//		Endpoint: llm.Endpoint{APIKey: key},
//	})
//
// A model is named by its id, by an inference profile, or by the ARN of one. Requests have a Bedrock API key, or are
// signed with the credentials of an AWS account.
//
// The package reads nothing from the environment and does not retry.
//
// Requests for models of Anthropic and for Amazon's Nova that belong to a conversation are marked for Bedrock's prompt
// cache, as package anthropic does it. Reasoning is requested when llm.Request.Effort is set, for models of Anthropic
// and OpenAI, and Nova 2. Schemas of replies are a part of the instructions, because few models enforce them there.
package bedrock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"strings"

	"raddle.dev/llm"
	"raddle.dev/llm/internal/wire"
)

// Credentials are those of an AWS account or of a role in it.
type Credentials struct {
	KeyID  string
	Secret string
	Token  string // of a session; "": none
}

// A Config selects a model and its region. Model and Region are required, and APIKey or Credentials.
type Config struct {
	Model  string // id, inference profile, or the ARN of one
	Region string // such as "us-east-1"; empty: that in the host of BaseURL
	// Endpoint is where the model is: BaseURL is the service in the region if it is empty, APIKey is a Bedrock API key
	// that counts before Credentials, and KeyName is "AWS_BEARER_TOKEN_BEDROCK" if it is empty.
	llm.Endpoint

	// Credentials returns the credentials for a request that begins now, with which it is signed. nil: there are only
	// keys.
	Credentials func(ctx context.Context) (Credentials, error)
	// Advice returns what to do about credentials that AWS has refused, as a sentence; nil: nothing is known.
	Advice func() string
}

// A Model is one model in one region. It is safe for concurrent use.
type Model struct {
	name   string
	maker  string // of the model, such as "anthropic"
	client *wire.Client
	url    string            // of the model's streaming endpoint
	header map[string]string // of every request
	origin string
	advice func() string
}

var _ llm.Model = (*Model)(nil)

// New checks c and returns a Model; it opens no connection. Missing credentials are an *llm.Error of class llm.Auth.
func New(c Config) (*Model, error) {
	region := cmp.Or(c.Region, RegionOf(c.BaseURL))
	address := cmp.Or(c.BaseURL, ServiceURL(region))
	c.KeyName = cmp.Or(c.KeyName, "AWS_BEARER_TOKEN_BEDROCK")
	settings := wire.Config{
		Name:      "bedrock",
		Model:     c.Model,
		Default:   ServiceURL("us-east-1"),
		Endpoint:  c.Endpoint,
		Media:     eventMedia,
		Translate: translateFrames,
	}
	settings.BaseURL = address
	signs := c.APIKey == "" && c.Credentials != nil
	switch {
	case region == "" && (address == "" || signs):
		return nil, errors.New("bedrock: no region is set")
	case c.APIKey == "" && c.Credentials == nil && c.BaseURL == "":
		return nil, &llm.Error{Class: llm.Auth, Message: "no credentials: set " + c.KeyName}
	case signs:
		s := &signer{region: region, credentials: c.Credentials}
		settings.Authorize = s.sign
	}
	client, err := wire.New(settings)
	if err != nil {
		return nil, err
	}
	base := client.BaseURL()
	m := &Model{
		name:   c.Model,
		maker:  makerOf(c.Model),
		client: client,
		header: map[string]string{"Accept": eventMedia},
		advice: c.Advice,
		url:    strings.TrimRight(base.String(), "/") + "/model/" + escapeID(c.Model) + "/converse-stream",
	}
	m.origin = "bedrock." + cmp.Or(m.maker, m.name) + "@" + base.Host
	if c.APIKey != "" {
		m.header["Authorization"] = "Bearer " + c.APIKey
	}
	return m, nil
}

// ServiceURL returns the address of Bedrock in a region, "" without one.
func ServiceURL(region string) string {
	if region == "" {
		return ""
	}
	domain := "amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		domain = "amazonaws.com.cn"
	}
	return fmt.Sprintf("https://bedrock-runtime.%s.%s", region, domain)
}

// RegionOf returns the region that an address of Bedrock names in its host, "" if there is none.
func RegionOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	labels := strings.Split(u.Hostname(), ".")
	for i, label := range labels[:len(labels)-1] {
		if label == "bedrock-runtime" || label == "bedrock-runtime-fips" {
			return labels[i+1]
		}
	}
	return ""
}

// escapeID returns the id of a model as a segment of a path. Slashes and colons of an ARN are part of the segment.
func escapeID(id string) string {
	return strings.ReplaceAll(url.PathEscape(id), ":", "%3A")
}

// makerOf returns the maker of a model: what stands before the name in an id, after the geography of an inference
// profile; "" if the id does not say it.
func makerOf(id string) string {
	id = id[strings.LastIndexByte(id, '/')+1:]
	labels := strings.Split(id, ".")
	for _, geography := range []string{"us", "us-gov", "eu", "apac", "jp", "au", "ca", "global"} {
		if labels[0] == geography {
			labels = labels[1:]
			break
		}
	}
	if len(labels) < 2 {
		return ""
	}
	return labels[0]
}

// Stream implements llm.Model.
func (m *Model) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return m.client.Stream(ctx, func(ctx context.Context, emit func(llm.Delta) error) (llm.Reply, error) {
		body, err := m.buildRequest(wire.RepairCalls(r, m.callRule()))
		if err != nil {
			return llm.Reply{}, err
		}
		d := &decoder{
			client:   m.client,
			parts:    m.client.NewAssembly(m.origin, emit),
			origin:   m.origin,
			redacted: map[int][]byte{},
		}
		if err := m.client.Exchange(ctx, m.url, m.header, body, d); err != nil {
			return llm.Reply{}, m.explain(err)
		}
		return d.buildReply(len(r.Messages), m.name)
	})
}

// callRule returns the rules for tool calls. Mistral's models have their own for ids.
func (m *Model) callRule() wire.CallRule {
	rule := wire.CallRule{NameMax: 64, IDMax: 64}
	if m.maker == "mistral" {
		rule.IDLength = 9
	}
	return rule
}
