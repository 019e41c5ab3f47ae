package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"raddle.dev/internal/base/environ"
)

func TestDirs(t *testing.T) {
	tests := map[string]struct {
		env  environ.Environ
		want Dirs
	}{
		"home": {
			env:  environ.Environ{"HOME=/h"},
			want: Dirs{Config: "/h/.config/raddle", Agents: "/h/.config/raddle/agents", Functions: "/h/.config/raddle/functions", State: "/h/.local/state/raddle", Cache: "/h/.cache/raddle", Bundled: "/h/.cache/raddle/bundled"},
		},
		"the standard's variables": {
			env:  environ.Environ{"HOME=/h", "XDG_CONFIG_HOME=/c", "XDG_STATE_HOME=/s", "XDG_CACHE_HOME=relative"},
			want: Dirs{Config: "/c/raddle", Agents: "/c/raddle/agents", Functions: "/c/raddle/functions", State: "/s/raddle", Cache: "/h/.cache/raddle", Bundled: "/h/.cache/raddle/bundled"},
		},
		"our own": {
			env:  environ.Environ{"HOME=/h", "XDG_CONFIG_HOME=/c", "RADDLE_CONFIG_DIR=mine"},
			want: Dirs{Config: "/w/mine", Agents: "/w/mine/agents", Functions: "/w/mine/functions", State: "/h/.local/state/raddle", Cache: "/h/.cache/raddle", Bundled: "/h/.cache/raddle/bundled"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := FindDirs(test.env, "/w")
			if err != nil {
				t.Fatal(err)
			}
			test.want.Work, test.want.Home = "/w", "/h"
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Dirs{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestShort(t *testing.T) {
	d := Dirs{Work: "/w/x", Home: "/h"}
	for path, want := range map[string]string{
		"/w/x/a/b": "a/b", "/w/x": ".", "/w/y": "/w/y", "/h/a": "~/a", "/h": "/h", "rel": "rel",
	} {
		if got := d.ShortPath(path); got != want {
			t.Errorf("Short(%q) = %q, want %q", path, got, want)
		}
	}
}
