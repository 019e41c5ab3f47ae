// Package boot keeps the pinned dependencies in go.mod while the packages that use them are being written.
package boot

import (
	_ "charm.land/huh/v2"
	_ "github.com/anthropics/anthropic-sdk-go"
	_ "github.com/charmbracelet/colorprofile"
	_ "github.com/creack/pty"
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/openai/openai-go/v3"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "go.yaml.in/yaml/v4"
	_ "golang.org/x/image/vector"
	_ "golang.org/x/image/font/opentype"
	_ "golang.org/x/image/font/gofont/goregular"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/term"
	_ "google.golang.org/genai"
	_ "modernc.org/sqlite"
	_ "pgregory.net/rapid"
)
