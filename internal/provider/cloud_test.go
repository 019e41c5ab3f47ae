package provider

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/environ"
	"raddle.dev/internal/keystore"
	"raddle.dev/internal/llmtest"
)

// startVendor starts a server of a vendor that answers every request with one word.
func startVendor(t *testing.T, v llmtest.Vendor) string {
	t.Helper()
	s := httptest.NewServer(v.NewHandler(func([]byte) (llmtest.Turn, int) { return llmtest.Turn{Text: "ok"}, 0 }))
	t.Cleanup(s.Close)
	return s.URL
}

// writeHome returns a home directory with files.
func writeHome(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A client of Bedrock signs with the credentials of AWS's programs, unless it has a key; its secrets are known to the redactor before they are used.
func TestBedrockClient(t *testing.T) {
	url := startVendor(t, llmtest.Bedrock())
	home := writeHome(t, map[string]string{
		".aws/credentials": "[default]\naws_access_key_id = " + llmtest.AWSKeyID + "\naws_secret_access_key = " + llmtest.AWSSecret + "\naws_session_token = " + llmtest.AWSToken + "\n[wrong]\naws_access_key_id = AKIAWRONG\naws_secret_access_key = wrong-secret-0000000001\n",
		".aws/config":      "[default]\nregion = " + llmtest.AWSRegion + "\n[profile sso]\nsso_start_url = x\nsso_region = us-east-1\nsso_account_id = 1\nsso_role_name = r\nregion = us-east-1\n",
	})
	own := environ.Environ{"HOME=" + home}
	const model = "aws:eu.anthropic.claude-x"
	for _, c := range []struct {
		name, settings string
		env            environ.Environ
		want           string // in the error; "": none
		from, lacks    string
	}{
		{name: "profile", env: own, from: "the AWS profile default"},
		{name: "variables", env: environ.Environ{"HOME=" + t.TempDir(), "AWS_ACCESS_KEY_ID=" + llmtest.AWSKeyID, "AWS_SECRET_ACCESS_KEY=" + llmtest.AWSSecret, "AWS_REGION=" + llmtest.AWSRegion}, from: "AWS_ACCESS_KEY_ID"},
		{name: "key", env: environ.Environ{"HOME=" + t.TempDir(), "AWS_BEARER_TOKEN_BEDROCK=" + llmtest.BedrockKey, "AWS_REGION=" + llmtest.AWSRegion}},
		{name: "key before profile", env: append(own, "AWS_BEARER_TOKEN_BEDROCK=wrong-key-0000000001"), want: `The key of client "aws" (AWS_BEARER_TOKEN_BEDROCK) was refused`},
		{name: "profile of the client before a key", settings: ", profile: default", env: append(own, "AWS_BEARER_TOKEN_BEDROCK=wrong-key-0000000001"), from: "the AWS profile default"},
		{name: "own key", settings: ", api_key: " + llmtest.BedrockKey, env: own},
		{name: "wrong account", settings: ", profile: wrong, region: " + llmtest.AWSRegion, env: own, want: "The credentials are from the AWS profile wrong.", from: "the AWS profile wrong"},
		{name: "other region", settings: ", region: us-west-2", env: own, want: "scoped to a valid region", from: "the AWS profile default"},
		{name: "no session", settings: ", profile: sso", env: own, want: `no credentials of client "aws": there is no session of AWS single sign-on: run aws sso login --profile sso`, from: "single sign-on of the AWS profile sso"},
		{name: "nothing", settings: ", region: " + llmtest.AWSRegion, env: environ.Environ{"HOME=/none"}, want: `there is no profile "default"`, lacks: `there is no profile "default"`},
		{name: "no region", settings: ", profile: wrong", env: own, want: "no region is set", from: "the AWS profile wrong", lacks: "no region is set"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := openWith(t, "clients: [{name: aws, type: bedrock, api_base: '"+url+"'"+c.settings+"}]\n", c.env)
			var learned []string
			r.UseStoredKeys(keystore.New(t.TempDir(), c.env), func(key string) { learned = append(learned, key) })
			err := ask(t, t.Context(), r.ForRun(nil, nil), model)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err == nil && c.from == "the AWS profile default" && !slices.Equal(learned, []string{llmtest.AWSSecret, llmtest.AWSToken}) {
				t.Errorf("learned %q", learned)
			}
			i := slices.IndexFunc(r.ListClients(), func(info ClientInfo) bool { return info.Client == "aws" })
			info := r.ListClients()[i]
			if info.From != c.from || !strings.Contains(info.Lacks, c.lacks) || c.lacks == "" && (info.Lacks != "" || !info.Ready) || c.lacks != "" && info.Ready {
				t.Errorf("%+v", info)
			}
		})
	}
	r := openWith(t, "clients: [{name: aws, type: bedrock}]\n", own)
	if facts := r.Facts("", "aws:global.anthropic.claude-sonnet-4-6"); facts.Window == 0 || facts.Price.Input == 0 {
		t.Errorf("facts: %+v", facts)
	}
}
