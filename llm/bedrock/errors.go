package bedrock

import (
	"errors"
	"strings"

	"raddle.dev/llm"
)

// classes maps the names of Bedrock's exceptions to classes. Names of the signature are those of AWS in general.
var classes = map[string]llm.Class{
	"ThrottlingException":                 llm.RateLimited,
	"TooManyRequestsException":            llm.RateLimited,
	"ServiceQuotaExceededException":       llm.RateLimited,
	"ModelNotReadyException":              llm.Overloaded,
	"ServiceUnavailableException":         llm.Overloaded,
	"ModelTimeoutException":               llm.Timeout,
	"ModelErrorException":                 llm.Server,
	"ModelStreamErrorException":           llm.Server,
	"InternalServerException":             llm.Server,
	"InternalFailure":                     llm.Server,
	"ValidationException":                 llm.BadRequest,
	"ResourceNotFoundException":           llm.BadRequest,
	"AccessDeniedException":               llm.Auth,
	"UnrecognizedClientException":         llm.Auth,
	"ExpiredTokenException":               llm.Auth,
	"InvalidSignatureException":           llm.Auth,
	"SignatureDoesNotMatch":               llm.Auth,
	"IncompleteSignatureException":        llm.Auth,
	"MissingAuthenticationTokenException": llm.Auth,
}

// classOf returns the class of an exception. Its name begins with a small letter in a stream.
func classOf(code string) llm.Class {
	for name, class := range classes {
		if strings.EqualFold(name, code) {
			return class
		}
	}
	return llm.Server
}

// tooLong are the beginnings of what Bedrock and its models say about a conversation that does not fit.
var tooLong = []string{"input is too long", "prompt is too long", "too many input tokens", "input length and `max_tokens` exceed context limit", "exceeds the maximum number of input tokens", "maximum context length"}

// explain returns the failure of a request with the class that its exception has, and what to do about it.
func (m *Model) explain(err error) error {
	e, is := errors.AsType[*llm.Error](err)
	if !is || e.Code == "" && e.Status == 0 {
		return err
	}
	known := *e
	for name, class := range classes {
		if strings.EqualFold(name, e.Code) {
			known.Class = class
		}
	}
	text := strings.ToLower(e.Message)
	for _, s := range tooLong {
		if known.Class == llm.BadRequest && strings.Contains(text, s) {
			known.Class = llm.ContextLength
		}
	}
	known.Message = addSentence(known.Message, m.findAdvice(known, text))
	return &known
}

// findAdvice returns what to do about a failure, "" if nothing is known.
func (m *Model) findAdvice(e llm.Error, text string) string {
	switch {
	case strings.Contains(text, "on-demand throughput isn"):
		return "Name an inference profile instead, such as us." + m.name + " or global." + m.name + "."
	case strings.Contains(text, "support tool use"):
		return "Use another model, or an agent without tools."
	case e.Class != llm.Auth:
		return ""
	case strings.Contains(text, "signature expired"), strings.Contains(text, "signature not yet current"):
		return "The clock of this machine is wrong: set it."
	case strings.EqualFold(e.Code, "AccessDeniedException") && strings.Contains(text, "model"):
		return "The account needs access to the model, and the permission bedrock:InvokeModelWithResponseStream."
	case m.advice != nil:
		return m.advice()
	}
	return ""
}

// addSentence appends a sentence to a message.
func addSentence(message, sentence string) string {
	if sentence == "" {
		return message
	}
	return strings.TrimRight(message, ". ") + ". " + sentence
}
