package netproxy

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"example.com", "example.com"}, {"EXAMPLE.com.", "example.com"}, {"münchen.de", "xn--mnchen-3ya.de"}, {"XN--MNCHEN-3YA.de", "xn--mnchen-3ya.de"},
		{"_dmarc.a-b.c", "_dmarc.a-b.c"}, {"localhost", "localhost"}, {"1.2.3.4", "1.2.3.4"}, {"1.2.3.4.", "1.2.3.4"}, {"::1", "::1"}, {"0:0::0001", "::1"},
		{"::ffff:127.0.0.1", "127.0.0.1"}, {"１２７.0.0.1", "127.0.0.1"}, {"example。com", "example.com"}, {"2001:DB8::1", "2001:db8::1"}, {"3com.example", "3com.example"},
		{"", ""}, {".", ""}, {"..", ""}, {"a..b", ""}, {"example.com..", ""}, {".example.com", ""}, {"a b", ""}, {"a\x00b", ""}, {"a\tb", ""}, {"a/b", ""}, {"a@b", ""}, {"a#b", ""},
		{"a%41", ""}, {`a\b`, ""}, {"*.example.com", ""}, {"fe80::1%eth0", ""}, {"[::1]", ""}, {"1", ""}, {"1.2.3", ""}, {"1.2.3.4.5", ""}, {"01.2.3.4", ""}, {"0x7f.1", ""}, {"a.0x7f", ""},
		{"0x7f000001", ""}, {"1.2.3.256", ""}, {"a.b.1", ""}, {"ex\u200bample.com\u202e", ""}, {"\xff.com", ""}, {strings.Repeat("a", 64) + ".com", ""}, {strings.Repeat("a.", 130) + "com", ""},
		{"1:2", ""}, {"example.com:443", ""}, {"①.1", ""},
	} {
		got, err := ParseHost(c.text)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("ParseHost(%q) = %q, %v, want %q", c.text, got, err, c.want)
		}
	}
}

func FuzzParseHost(f *testing.F) {
	for _, text := range []string{"example.com", "EXAMPLE.com.", "münchen.de", "::ffff:127.0.0.1", "１２７.0.0.1", "0x7f.1", "a\x00b", "fe80::1%eth0", "xn--a", "ß.de", "faß.de."} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, err := ParseHost(text)
		if err != nil {
			return
		}
		if again, err := ParseHost(host); err != nil || again != host {
			t.Errorf("ParseHost(%q) = %q, and of that %q, %v", text, host, again, err)
		}
		at, err := netip.ParseAddr(host)
		if clean := cleanText(host); clean != host || strings.ContainsAny(host, " /@%\\[]") || err != nil && strings.Contains(host, ":") || err == nil && at.Is4In6() {
			t.Errorf("ParseHost(%q) = %q", text, host)
		}
	})
}

func TestCleanText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"a\r\nb": `a\r\nb`, `say "x"`: `say "x"`, "\x1b[31m\u202e\xff": `\x1b[31m\u202e\xff`, strings.Repeat("x", 600): strings.Repeat("x", 497) + "..."} {
		if got := cleanText(text); got != want {
			t.Errorf("cleanText(%q) = %q, want %q", text, got, want)
		} else if again := cleanText(got); again != got {
			t.Errorf("cleanText(%q) = %q", got, again)
		}
	}
}
