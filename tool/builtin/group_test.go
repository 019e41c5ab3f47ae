package builtin_test

import (
	"strings"
	"testing"

	"raddle.dev/tool/builtin"
)

// TestLookupGroup: an agent may list groups of tools, and a search of the web by any service.
func TestLookupGroup(t *testing.T) {
	for name, want := range map[string]string{
		"fs":                 "apply_patch fs_cat fs_edit fs_glob fs_grep fs_ls fs_mkdir fs_patch fs_read fs_rm fs_write",
		"python":             "execute_py_code",
		"fs_cat.sh":          "fs_cat",
		"web_search":         "web_search",
		"web_search_loki.sh": "web_search_loki",
		"fs_":                "",
		"none":               "",
	} {
		var got []string
		for _, tl := range builtin.LookupGroup(name, builtin.Host{Workspace: t.TempDir()}) {
			got = append(got, tl.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s stands for %q, want %q", name, got, want)
		}
	}
}

// TestWebSearchChoosesAService: the service whose key is set is asked, and without a key the answer names both.
func TestWebSearchChoosesAService(t *testing.T) {
	for _, k := range []struct{ env, host, says string }{
		{"", "api.tavily.com", "set TAVILY_API_KEY or PERPLEXITY_API_KEY"},
		{"TAVILY_API_KEY=k", "api.tavily.com", ""},
		{"PERPLEXITY_API_KEY=k", "api.perplexity.ai", ""},
	} {
		h := builtin.Host{Workspace: t.TempDir(), Env: []string{k.env}}
		tl := lookup(t, h, "web_search_loki")
		touch, err := tl.Touches(raw(t, object{"query": "looms"}))
		if err != nil || len(touch.Network) != 1 || touch.Network[0] != k.host {
			t.Errorf("with %q it reaches %v, %v; want %s", k.env, touch.Network, err, k.host)
		}
		if k.says != "" {
			if got := use(t, h, "web_search_loki", object{"query": "looms"}); !strings.Contains(got, k.says) {
				t.Errorf("without a key: %s", got)
			}
		}
	}
}
