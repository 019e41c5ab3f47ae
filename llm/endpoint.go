package llm

import (
	"net/http"
	"time"
)

// An Endpoint is where the models of a provider are and how to connect to it. The packages of the providers embed it in
// their Config, next to the name of the model; one Endpoint serves any number of models. The zero value is the
// provider's own service, which needs a key.
type Endpoint struct {
	// BaseURL is the address to which the package adds the paths of the provider's API; empty: the provider's own
	// service. The Config of each package says which parts of the path belong to it.
	BaseURL string
	// APIKey is required for the provider's own service; empty: no key is sent.
	APIKey string
	// KeyName is the name of the setting with the key, for messages; empty: the variable that the provider documents,
	// such as "OPENAI_API_KEY".
	KeyName string
	// Headers are sent with every request, and replace those of the package.
	Headers map[string]string
	// Body has members that every request gets at the end: objects are merged, every other value replaces that of the
	// package.
	Body map[string]any
	// HTTPClient sends the requests, and follows no redirect; nil: a client that all models share, with a connect
	// timeout of 10 s and the proxy of the environment.
	HTTPClient *http.Client
	// ReadTimeout is the longest time without data from the server; 0 and less: 300 s.
	ReadTimeout time.Duration
	// StreamTimeout is the longest time from a request to the end of its reply; 0: 30 minutes; negative: no limit.
	StreamTimeout time.Duration
	// MaxReply is the largest reply in bytes: text, reasoning, arguments and media; 0: 16 MiB; negative: no limit.
	MaxReply int
}
