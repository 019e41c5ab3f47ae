package provider

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"raddle.dev/internal/config"
	"raddle.dev/internal/keystore"
	"raddle.dev/llm"
)

// keySource returns the client of a key and where the key comes from, for messages.
func (c *client) keySource(env config.Environ) string {
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

// nameStored returns where a stored key is, for people.
func nameStored(p keystore.Place) string {
	if p == keystore.File {
		return keystore.FileName
	}
	return string(p)
}

// refusedKey returns a model whose error says whose key was refused. It replaces the
// advice of the wire, which knows the name of a variable but not where the key was found.
func refusedKey(m llm.Model, advice, source string) llm.Model {
	return &keySourceModel{m, advice, source}
}

type keySourceModel struct {
	model          llm.Model
	advice, source string
}

// Stream implements [llm.Model].
func (k *keySourceModel) Stream(ctx context.Context, r llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for d, err := range k.model.Stream(ctx, r) {
			var failure *llm.Error
			if errors.As(err, &failure) && failure.Class == llm.Auth {
				named := *failure
				named.Message = strings.TrimSuffix(named.Message, k.advice)
				if named.Message != "" {
					named.Message = strings.TrimRight(named.Message, ". ") + ". "
				}
				named.Message += "The key of " + k.source + " was refused."
				err = &named
			}
			if !yield(d, err) {
				return
			}
		}
	}
}
