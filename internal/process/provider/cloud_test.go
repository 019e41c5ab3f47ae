package provider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
	"raddle.dev/internal/storage/keystore"
	"raddle.dev/internal/testkit/llmtest"
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

// A client of Vertex reaches models of Google and Anthropic with the credentials that gcloud has stored, in the project and the location of the
// client, of the environment or of the credentials.
func TestVertexClient(t *testing.T) {
	onGemini, onAnthropic := startVendor(t, llmtest.VertexGemini()), startVendor(t, llmtest.VertexAnthropic())
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.FormValue("refresh_token") {
		case "refresh-1":
		case "refresh-3":
			fmt.Fprint(w, `{"access_token":"ya29.token-of-another-0001","expires_in":3599}`)
			return
		default:
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`)
			return
		}
		fmt.Fprintf(w, `{"access_token":%q,"expires_in":3599}`, llmtest.GoogleToken)
	}))
	t.Cleanup(tokens.Close)
	user := `{"type":"authorized_user","client_id":"id","client_secret":"client-secret-1","refresh_token":"refresh-1","quota_project_id":"` + llmtest.GoogleProject + `","token_uri":"` + tokens.URL + `"}`
	home := writeHome(t, map[string]string{"good.json": user, "old.json": strings.Replace(user, "refresh-1", "refresh-2", 1), "other.json": strings.Replace(user, "refresh-1", "refresh-3", 1), "bare.json": strings.Replace(user, "quota_project_id", "other", 1)})
	named := func(name string, more ...string) environ.Environ {
		return append(environ.Environ{"HOME=" + home, "GOOGLE_APPLICATION_CREDENTIALS=" + filepath.Join(home, name)}, more...)
	}
	place := ", location: " + llmtest.GoogleLocation
	from := "GOOGLE_APPLICATION_CREDENTIALS (authorized_user)"
	for _, c := range []struct {
		name, url, settings, model string
		env                        environ.Environ
		want                       string // in the error; "": none
		from, lacks                string
	}{
		{name: "Gemini", url: onGemini, settings: place, model: "gemini-x", env: named("good.json"), from: from},
		{name: "Gemini with its maker", url: onGemini + "/v1", settings: place, model: "google/gemini-x", env: named("good.json"), from: from},
		{name: "Claude", url: onAnthropic, settings: place, model: "claude-x@20260101", env: named("good.json"), from: from},
		{name: "project of the client", url: onGemini, settings: place + ", project: " + llmtest.GoogleProject, model: "gemini-x", env: named("bare.json"), from: from},
		{name: "place of the environment", url: onGemini, model: "gemini-x", env: named("bare.json", "GOOGLE_CLOUD_PROJECT="+llmtest.GoogleProject, "GOOGLE_CLOUD_LOCATION="+llmtest.GoogleLocation), from: from},
		{name: "whole address", url: onGemini + "/v1/projects/" + llmtest.GoogleProject + "/locations/" + llmtest.GoogleLocation, settings: place, model: "gemini-x", env: named("good.json"), from: from},
		{name: "token as key", url: onGemini, settings: place + ", api_key: " + llmtest.GoogleToken, model: "gemini-x", env: named("good.json")},
		{name: "wrong token as key", url: onGemini, settings: place + ", api_key: ya29.wrong-token-1", model: "gemini-x", env: named("good.json"), want: `The key of client "g" (config.yaml:1) was refused`},
		{name: "other project", url: onGemini, settings: place + ", project: other-project", model: "gemini-x", env: named("good.json"), want: "does not have access", from: from},
		{name: "ended login", url: onGemini, settings: place, model: "gemini-x", env: named("old.json"), want: "Token has been expired or revoked.: run gcloud auth application-default login", from: from},
		{name: "refused token", url: onGemini, settings: place, model: "gemini-x", env: named("other.json"), want: "The credentials are from GOOGLE_APPLICATION_CREDENTIALS (authorized_user).", from: from},
		{name: "other maker", url: onGemini, settings: place, model: "meta/llama-x", env: named("good.json"), want: "models of meta are not reached", from: from},
		{name: "no project", url: onGemini, settings: place, model: "gemini-x", env: named("bare.json"), want: "no project is set", from: from, lacks: "no project is set"},
		{name: "no location", url: onGemini, model: "gemini-x", env: named("good.json"), want: "no location is set", from: from, lacks: "no location is set"},
		{name: "nothing", url: onGemini, settings: place + ", project: p", model: "gemini-x", env: named("none.json"), want: "run gcloud auth application-default login", lacks: "run gcloud auth application-default login"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := openWith(t, "clients: [{name: g, type: vertex, api_base: '"+c.url+"'"+c.settings+"}]\n", c.env)
			var learned []string
			r.UseStoredKeys(keystore.New(t.TempDir(), c.env), func(key string) { learned = append(learned, key) })
			err := ask(t, t.Context(), r.ForRun(nil, nil), "g:"+c.model)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if err == nil && c.from != "" && !slices.Equal(learned, []string{"client-secret-1", "refresh-1", llmtest.GoogleToken}) {
				t.Errorf("learned %q", learned)
			}
			i := slices.IndexFunc(r.ListClients(), func(info ClientInfo) bool { return info.Client == "g" })
			info := r.ListClients()[i]
			if info.From != c.from || !strings.Contains(info.Lacks, c.lacks) || c.lacks == "" && (info.Lacks != "" || !info.Ready) || c.lacks != "" && info.Ready {
				t.Errorf("%+v", info)
			}
		})
	}
	for location, want := range map[string]string{"global": "https://aiplatform.googleapis.com", "eu": "https://aiplatform.eu.rep.googleapis.com", "us-east5": "https://us-east5-aiplatform.googleapis.com"} {
		r := openWith(t, "clients: [{type: vertex, project: p, location: "+location+"}]\n", named("good.json"))
		c, _ := r.findClient("vertex:x")
		if got, err := c.cloud.vertexBase(t.Context()); err != nil || got != want+"/v1/projects/p/locations/"+location {
			t.Errorf("%s: %s, %v", location, got, err)
		}
	}
	r := openWith(t, "clients: [{type: vertex, project: p, location: global}]\n", named("good.json"))
	for _, id := range []string{"vertex:gemini-3.5-flash", "vertex:google/gemini-3.5-flash", "vertex:claude-sonnet-4-6", "vertex:anthropic/claude-haiku-4-5@20251001"} {
		if facts := r.Facts("", id); facts.Window == 0 || facts.Price.Input == 0 {
			t.Errorf("facts of %s: %+v", id, facts)
		}
	}
}
