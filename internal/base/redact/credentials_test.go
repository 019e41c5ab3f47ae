package redact_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"raddle.dev/internal/base/redact"
)

// TestCredentialsInVariables looks for the value behind each way to log in, whatever the variable is called.
func TestCredentialsInVariables(t *testing.T) {
	const token = "tk-0123456789abcdef"
	basic := base64.StdEncoding.EncodeToString([]byte("ann:pass-word-1"))
	for text, want := range map[string][]string{
		"Authorization: Bearer " + token:                 {token},
		"authorization:bearer " + token:                  {token},
		"Authorization: Token " + token:                  {token},
		"Authorization: Basic " + basic:                  {basic, "pass-word-1", "ann:pass-word-1"},
		"Proxy-Authorization: Basic " + basic:            {basic, "pass-word-1"},
		"Authorization: Bearer abcdefghij":               {"abcdefghij"},
		"Authorization: Custom-Scheme " + token:          {token},
		"Authorization: " + token:                        {token},
		"X-Api-Key: " + token:                            {token},
		"Private-Token: " + token:                        {token},
		"X-Anything: Bearer " + token:                    {token},
		"X-Anything: Own " + token:                       {token},
		"Cookie: session=" + token:                       {token},
		"Bearer " + token:                                {token},
		"bearer some-secret":                             {"some-secret"},
		"Basic " + basic:                                 {basic, "pass-word-1"},
		"-H 'Authorization: Bearer " + token + "' -v":    {token},
		`{"Authorization": "Bearer ` + token + `"}`:      {token},
		"Accept: text/plain\nX-Auth-Token: " + token:     {token},
		"http.extraheader=AUTHORIZATION: basic " + basic: {basic, "pass-word-1"},
	} {
		s := &redact.Set{}
		s.AddNamed("EXTRA", text)
		for _, value := range want {
			if got := s.Text("say " + value + " now"); got != "say [redacted] now" {
				t.Errorf("%s: %s is not known: %s", text, value, got)
			}
		}
		if !redact.HasSecret("EXTRA", text) {
			t.Errorf("%s holds no secret", text)
		}
	}
	for _, text := range []string{
		"Basic authentication required", "bearer of bad news", "Token: ring", "Note: Basic understanding of computers", "author: John Smith", "Content-Type: text/html",
		"X-Trace: some words", "X-Level: 12345678", "Bearer short", "Basic", "basic training", "Warning: token expired yesterday", "keyboard: english", "see: https://example.com/a", "12:30:45",
	} {
		s := &redact.Set{}
		s.AddNamed("EXTRA", text)
		for _, word := range strings.Fields(text) {
			if got := s.Text(word); got != word {
				t.Errorf("%s: %s counts as a secret", text, word)
			}
		}
		if redact.HasSecret("EXTRA", text) {
			t.Errorf("%s holds a secret", text)
		}
	}
}

// TestSecretsInArguments looks for secrets behind flags in every form.
func TestSecretsInArguments(t *testing.T) {
	const value = "tk-0123x456"
	for _, flag := range []string{"--api-key", "--apikey", "--api_key", "--apiKey", "--token", "--auth-token", "--access-token", "--password", "--passwd", "--pass", "--secret", "--client-secret",
		"--secret-key", "--credential", "-token", "-password", "--pat", "--pw", "--jwt", "--bearer", "--auth", "--authorization", "-p", "-P", "-k", "-t", "-a"} {
		for _, args := range [][]string{{flag, value}, {flag + "=" + value}, {"run", flag, value, "--verbose"}} {
			checkArguments(t, args, value)
		}
	}
	for _, args := range [][]string{
		{"-p" + value}, {"-u", "ann:" + value}, {"-u=ann:" + value}, {"--user", "ann:" + value}, {"--header", "Authorization: Bearer " + value}, {"-H", "X-Api-Key: " + value}, {"--header=Authorization: Token " + value},
		{"-e", "GITHUB_TOKEN=" + value}, {"--env=MY_SECRET=" + value}, {"https://ann:" + value + "@example.com/"}, {"--url", "https://example.com/?token=" + value}, {"--config", `{"apiKey": "` + value + `"}`},
		{"--headers", `{"Authorization":"Bearer ` + value + `"}`}, {"--auth", "Bearer " + value}, {"Bearer " + value},
	} {
		checkArguments(t, args, value)
	}
	for _, args := range [][]string{
		{"--max-tokens", "128000"}, {"--tokens=4096"}, {"-p", "8080:80"}, {"-p", "python3.12"}, {"-p", "my-project"}, {"-p", "./some/dir1a"}, {"-pretty"}, {"-t", "node:22-alpine"}, {"--key", "./cert1a.pem"}, {"--auth", "oauth2"},
		{"--auth", "none"}, {"--password", "secret"}, {"--token", "changeme"}, {"-k", "--verbose"}, {"--api-key", "--verbose-mode-1"}, {"--key=id", "value"}, {"-u", "1000:1000"}, {"--name", "something-1a2b"}, {"--token", "${TOKEN}"}, {"--user", "root"},
	} {
		if found := redact.FindFlagSecrets(args); len(found) > 0 {
			t.Errorf("%q: %q count as secrets", args, found)
		}
	}
}

func checkArguments(t *testing.T, args []string, value string) {
	t.Helper()
	if got := redact.New(redact.FindFlagSecrets(args)...).Text(">" + value + "<"); got != ">[redacted]<" {
		t.Errorf("%q: the secret is not known", args)
	}
}
