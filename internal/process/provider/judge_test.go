package provider

import (
	"strings"
	"testing"

	"raddle.dev/internal/base/environ"
)

func TestJudgeKey(t *testing.T) {
	const rest = "0123456789abcdefghijklmnop"
	good := map[string][]string{
		"openai":     {"sk-proj-" + rest, "sk-svcacct-" + rest, "sk-" + rest},
		"anthropic":  {"sk-ant-api03-" + rest},
		"openrouter": {"sk-or-v1-" + rest},
		"gemini":     {"AIza" + rest, "AQ." + rest},
		"groq":       {"gsk_" + rest},
		"xai":        {"xai-" + rest},
		"deepseek":   {"sk-" + rest},
		"mistral":    {rest},
		"":           {"EMPTY", "sk-1234", "lm-studio", "x", "sk-ant-" + rest},
	}
	for name, keys := range good {
		for _, key := range keys {
			if why := JudgeKey(name, key); why != "" {
				t.Errorf("%s %s: %s", name, key, why)
			}
		}
	}
	everywhere := map[string]string{
		"{{OPENAI_API_KEY}}": "names a variable", "${OPENAI_API_KEY}": "names a variable", "Bearer ${KEY}": "names a variable", "{{ KEY": "names a variable", "$OPENAI_API_KEY": "names a variable",
		"'sk-proj-" + rest + "'": "quotes", "\"sk-" + rest: "quotes",
		"YOUR_KEY": "placeholder", "your-api-key": "placeholder", "sk-...": "placeholder", "sk-…": "placeholder", "<key>": "placeholder", "<your openai key>": "placeholder",
		"YOUR_OPENAI_KEY": "placeholder", "YOUR_API_KEY_HERE": "placeholder", "sk-xxxxxxxx": "placeholder", "changeme": "placeholder", "sk-proj-abc...xyz": "placeholder",
		"Bearer sk-" + rest: "Bearer", "sk-one two": "white space", "sk-one\nsk-two": "white space", "sk-ключ": "characters", "": "empty", " ": "empty",
	}
	for key, want := range everywhere {
		for name := range good {
			if why := JudgeKey(name, key); !strings.Contains(why, want) {
				t.Errorf("%q for %q: %q, want %q", key, name, why, want)
			}
		}
	}
	for _, test := range []struct{ name, key, want string }{
		{"openai", "sk-short", "too short"}, {"mistral", strings.Repeat("a", 32), "repeated"},
		{"openai", "sk-ant-" + rest, "a key of anthropic"}, {"anthropic", "sk-proj-" + rest, "a key of openai"},
		{"openai", "AIza" + rest, "a key of gemini"}, {"gemini", "gsk_" + rest, "a key of groq"}, {"deepseek", "sk-or-v1-" + rest, "a key of openrouter"},
		{"groq", "xai-" + rest, "a key of xai"}, {"mistral", "sk-proj-" + rest, "a key of openai"}, {"openai", "github_pat_" + rest, "a key of GitHub"},
	} {
		why := JudgeKey(test.name, test.key)
		if !strings.Contains(why, test.want) {
			t.Errorf("%s for %s: %q, want %q", test.key, test.name, why, test.want)
		}
		if strings.Contains(why, test.key[:5]) {
			t.Errorf("%s for %s: %q shows too much of it", test.key, test.name, why)
		}
	}
}

// The error of the first refused call says why the key can be none.
func TestRefusedKeyIsJudged(t *testing.T) {
	url, _ := newKeyRecorder(t)
	r := openWith(t, "clients: [{name: work, type: openai-compatible, api_base: '"+url+"', api_key: YOUR_KEY}]\n", nil)
	err := ask(t, t.Context(), r, "work:a")
	if err == nil || !strings.Contains(err.Error(), "was refused: it is the placeholder of an example") || strings.Contains(err.Error(), "YOUR_KEY") {
		t.Errorf("%v", err)
	}
	r = openWith(t, "", environ.Environ{"OPENAI_API_KEY=sk-ant-0123456789abcdefghij", "GROQ_API_KEY=gsk_0123456789abcdefghij"})
	if why := r.JudgeClientKey("openai"); !strings.Contains(why, "a key of anthropic") {
		t.Errorf("openai: %q", why)
	}
	if why := r.JudgeClientKey("groq"); why != "" {
		t.Errorf("groq: %q", why)
	}
}
