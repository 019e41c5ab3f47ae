package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/config"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/llm"
)

// keySource returns the client of a key and where the key comes from, for messages.
func (c *client) keySource(env environ.Environ) string {
	if c.command != nil {
		return fmt.Sprintf("client %q (api_key_command, %s)", c.Name, c.command.at)
	}
	if c.stored != keystore.Nowhere {
		return fmt.Sprintf("client %q (%s; to store another: raddle login %s)", c.Name, nameStored(c.stored), c.Name)
	}
	from := config.FileName
	if c.KeyLine > 0 {
		from = fmt.Sprintf("%s:%d", config.FileName, c.KeyLine)
	}
	switch {
	case c.KeyVar != "":
		from = c.KeyVar + ", named in " + from
	case c.KeyLine == 0:
		for _, name := range c.keyNames {
			if _, ok := env.Lookup(name); ok {
				from = name
				break
			}
		}
	}
	return fmt.Sprintf("client %q (%s)", c.Name, from)
}

// describeMissingKey says what to do about a key that the client needs and does not have.
func (c *client) describeMissingKey() string {
	text := "set " + c.keyNames[0]
	if unset := c.FindUnset("api_key"); unset != nil {
		text += fmt.Sprintf(", which config.yaml names as the api_key of client %s (%s)", c.Name, unset.Pos)
	}
	return text + ", or store one: raddle login " + c.Name
}

// nameStored returns where a stored key is, for people.
func nameStored(p keystore.Place) string {
	if p == keystore.File {
		return keystore.FileName
	}
	return string(p)
}

// An explainedModel is a model whose errors say where a refused key and a wrong address come from. The wire knows
// neither.
type explainedModel struct {
	model  llm.Model
	client *client
	env    environ.Environ
}

// Stream implements [llm.Model].
func (e *explainedModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range e.model.Stream(ctx, r) {
			var failure *llm.Error
			if errors.As(err, &failure) {
				if message := e.explain(failure); message != failure.Message {
					named := *failure
					named.Message = message
					err = &named
				}
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// explain returns the message of a failure with what is known about its cause.
func (e *explainedModel) explain(f *llm.Error) string {
	c := e.client
	switch {
	case f.Class == llm.Auth && c.Key != "":
		// The end is advice of the wire, which does not know where the key comes from.
		text := strings.TrimSuffix(f.Message, "; set "+c.keyNames[0]+" to a key that is valid for this model")
		if text != "" {
			text = strings.TrimRight(text, ". ") + ". "
		}
		text += "The key of " + c.keySource(e.env) + " was refused"
		if why := JudgeKey(c.judgedName(), c.Key); why != "" {
			return text + ": " + why + "."
		}
		return text + "."
	case f.Class == llm.Auth && c.cloud.advice(f) != "":
		return endSentence(f.Message) + c.cloud.advice(f)
	case f.Class != llm.Network || f.Code != llm.CodeRefused && f.Code != llm.CodeUnreachable:
		return f.Message
	case c.BaseAt > 0:
		return fmt.Sprintf("%s The address is from %s:%d.", endSentence(f.Message), config.FileName, c.BaseAt)
	case c.baseFrom != "":
		return endSentence(f.Message) + " The address is from " + c.baseFrom + "."
	case c.Type == "ollama":
		return endSentence(f.Message) + " To start it: ollama serve."
	}
	return f.Message
}

// endSentence returns a text that ends like a sentence.
func endSentence(text string) string {
	if strings.HasSuffix(text, ".") || strings.HasSuffix(text, "?") {
		return text
	}
	return text + "."
}
