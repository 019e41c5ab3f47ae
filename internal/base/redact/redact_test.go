package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"maps"
	"math/rand/v2"
	"net/url"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// samples are secrets of many kinds, by their special property.
var samples = map[string]string{
	"plain":     "zzPLAIN123456",
	"pem":       "-----BEGIN PRIVATE KEY-----\nzzPEM" + strings.Repeat("MIIEvQIBADANBgkqhkiG9w0B", 4) + "\n+/" + strings.Repeat("abcDEF0123", 6) + "==\n-----END PRIVATE KEY-----\n",
	"crlf":      "first zz line of it\r\nsecond zz line of it",
	"quotes":    `zz"QUOTE'1"2'34`,
	"backslash": `zz\back\nslash\\12\u0041`,
	"unicode":   "zzñandú→😀秘密",
	"html":      "zz<b>&amp;</b>&12",
	"base64":    "zzAb+/cd/EF+gh==",
	"spaces":    "  zz padded value  ",
	"dollar":    "zz$HOME%41`id`$(x)",
	"percent":   "zz%20%%+100%",
	"json":      `{"type": "zz_account", "private_key": "-----BEGIN-----\nzzINJSONzzINJSONzz\n", "n": [1, 2]}`,
	"short":     "zz1-xy",
	"control":   "zz\ttab\x01\x1b[31m\x7f",
}

// encoders write a value as programs do.
var encoders = map[string]func(string) string{
	"raw":        func(s string) string { return s },
	"json":       func(s string) string { b, _ := json.Marshal(s); return string(b) },
	"json plain": func(s string) string { return string(encodeJSONString(s)) },
	"json ascii": asciiJSON,
	"json slash": func(s string) string { return strings.ReplaceAll(asciiJSON(s), "/", `\/`) },
	"json twice": func(s string) string { b, _ := json.Marshal(s); b, _ = json.Marshal(string(b)); return string(b) },
	"json thrice": func(s string) string {
		b, _ := json.Marshal(s)
		b, _ = json.Marshal(string(b))
		b, _ = json.Marshal(string(b))
		return string(b)
	},
	"go":        strconv.Quote,
	"go ascii":  strconv.QuoteToASCII,
	"single":    func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	"single py": func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'"'"'`) + "'" },
	"double": func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(s) + `"`
	},
	"query":         url.QueryEscape,
	"path":          url.PathEscape,
	"lower query":   func(s string) string { return lowerPercent(url.QueryEscape(s)) },
	"all percent":   allPercent,
	"html":          html.EscapeString,
	"json of html":  func(s string) string { b, _ := json.Marshal(html.EscapeString(s)); return string(b) },
	"json of url":   func(s string) string { b, _ := json.Marshal("http://h/?k=" + url.QueryEscape(s)); return string(b) },
	"base64":        func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 raw":    func(s string) string { return base64.RawStdEncoding.EncodeToString([]byte(s)) },
	"base64 url":    func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) },
	"base64 rawurl": func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) },
	"base64 line":   func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s + "\n")) },
	"base64 76":     func(s string) string { return wrapLines(base64.StdEncoding.EncodeToString([]byte(s)), 76) },
	"base64 in url": func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) },
	"lf":            func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") },
	"crlf":          func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n") },
	"trimmed":       strings.TrimSpace,
	"one line":      func(s string) string { return strings.Join(strings.Fields(s), " ") },
}

func asciiJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteString(`\` + string(r))
		case r < 0x20 || r > 0x7e && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r >= 0x10000:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04X\u%04X`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			b.WriteRune(r)
		}
	}
	return b.String() + `"`
}

func lowerPercent(s string) string {
	b := []byte(s)
	for i := range b {
		if b[i] == '%' && i+2 < len(b) {
			copy(b[i:], strings.ToLower(s[i:i+3]))
		}
	}
	return string(b)
}

func allPercent(s string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

func TestEveryFormIsFound(t *testing.T) {
	for shape, secret := range samples {
		set := New(secret)
		for form, encode := range encoders {
			written := encode(secret)
			for _, around := range []string{"%s", "before %s after", "k=%s&x=1", "%s%s"} {
				text := strings.ReplaceAll(around, "%s", written)
				got := set.Text(text)
				rest := strings.Trim(strings.ReplaceAll(got, Mask, ""), " \"'\n")
				want := strings.Trim(strings.ReplaceAll(around, "%s", ""), " ")
				if form == "json of url" {
					rest = strings.ReplaceAll(strings.ReplaceAll(rest, "http://h/?k=", ""), `"`, "")
				}
				rest = strings.NewReplacer(`\`, "", `"`, "", "'", "", "&#34;", "").Replace(rest)
				if strings.TrimSpace(strings.ReplaceAll(rest, "before  after", "before after")) != strings.ReplaceAll(want, "before  after", "before after") {
					t.Errorf("%s as %s: %q became %q", shape, form, text, got)
				}
			}
		}
	}
}

// TestProgramsWriteForms runs the programs whose output is searched.
func TestProgramsWriteForms(t *testing.T) {
	var secrets []string
	for _, shape := range sortedKeys(samples) {
		secrets = append(secrets, samples[shape])
	}
	set := New(secrets...)
	check := func(name string, argv ...string) {
		if _, err := exec.LookPath(argv[0]); err != nil {
			t.Skipf("no %s", argv[0])
		}
		out, err := exec.Command(argv[0], append(argv[1:], secrets...)...).Output()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		parts := strings.Split(string(out), "=====\n")
		if len(parts) != len(secrets)+1 {
			t.Fatalf("%s: %d outputs", name, len(parts)-1)
		}
		for i, part := range parts[:len(secrets)] {
			if got := set.Text(part); strings.Contains(got, "zz") || !strings.Contains(got, Mask) {
				t.Errorf("%s of %q: %q became %q", name, secrets[i], part, got)
			}
		}
	}
	for _, script := range []string{`printf %q "$v"`, `printf %s "${v@Q}"`, `declare -p v`, `echo $v`, `printf %s "$v" | base64`, `echo "$v" | base64 -w0`, `set -x; : "$v"`} {
		check(script, "bash", "-fc", `for v; do { `+script+`; } 2>&1; { set +x; } 2>/dev/null; echo; echo =====; done`, "x")
	}
	for _, expression := range []string{
		"json.dumps({'a': v})", "json.dumps({'a': v}, ensure_ascii=False)", "json.dumps(json.dumps({'a': json.dumps(v)}))", "repr(v)", "repr(v.encode())", "shlex.quote(v)",
		"u.quote(v) + ' ' + u.quote_plus(v) + ' ' + u.quote(v, safe='')", "base64.encodebytes(v.encode()).decode()", "html.escape(v)",
	} {
		check(expression, "python3", "-c", "import json,shlex,sys,base64,html,urllib.parse as u\nfor v in sys.argv[1:]:\n print("+expression+")\n print('=====')")
	}
}

func TestDocumentsStayValid(t *testing.T) {
	set := New("12345678", `{"private_key":"zz-the-key-of-it","n":1}`, "zz\"quote\\1", "secretname1")
	for text, want := range map[string]string{
		`{"pin":12345678}`:                                     `{"pin":"[redacted]"}`,
		`{"pin":-1234567890}`:                                  `{"pin":"[redacted]"}`,
		`{"pin":"a12345678b"}`:                                 `{"pin":"a[redacted]b"}`,
		`{"x":{"private_key":"zz-the-key-of-it","n":1}}`:       `{"x":"[redacted]"}`,
		`{"x": {"private_key": "zz-the-key-of-it", "n": 1}}`:   `{"x": "[redacted]"}`,
		`{"x":{"n":1,"y":2,"private_key":"zz-the-key-of-it"}}`: `{"x":{"n":1,"y":2,"private_key":"[redacted]"}}`,
		`["zz\"quote\\1","\u007az\u0022quote\\1"]`:             `["[redacted]","[redacted]"]`,
		`{"secretname1":1}`:                                    `{"[redacted]":1}`,
		`pin 12345678`:                                         `pin [redacted]`,
		`{"pin":12345678`:                                      `{"pin":[redacted]`,
	} {
		if got := set.Text(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
		if got := string(RedactJSON(json.RawMessage(text), set.Text)); !json.Valid([]byte(got)) || strings.Contains(got, "12345678") {
			t.Errorf("JSON: %s became %s", text, got)
		}
	}
	opaque := strings.NewReplacer("zz\"quote\\1", "***").Replace
	if got := string(RedactJSON(json.RawMessage(`{"a":["zz\"quote\\1"],"n":1.50}`), opaque)); got != `{"a":["***"],"n":1.50}` {
		t.Errorf("with a function of the caller: %s", got)
	}
}

func TestSecretsInsideOfEachOther(t *testing.T) {
	set := New("prefix-of-it", "prefix-of-it-and-more", "more-to-come", "aaaaaaaab")
	for text, want := range map[string]string{
		"prefix-of-it-and-more":         Mask,
		"prefix-of-it-and-mor":          Mask + "-and-mor",
		"prefix-of-it-and-more-to-come": Mask,
		"aaaaaaaaaaab":                  "aaa" + Mask,
		"prefix-of-itprefix-of-it":      Mask + Mask,
	} {
		if got := set.Text(text); got != want {
			t.Errorf("%s became %s, want %s", text, got, want)
		}
	}
}

func TestWhatIsNoSecret(t *testing.T) {
	for _, v := range []string{"", "true", "1", "12345", "abcdef", "abcdefg", "1234567", "password", "Production", "   short ", "localhost"} {
		if IsSecretValue(v) {
			t.Errorf("%q is taken for a secret", v)
		}
	}
	for _, v := range []string{"abc123", "abcd-efg", "12345678", "abcdefgh", "秘密的"} {
		if !IsSecretValue(v) {
			t.Errorf("%q is not taken for a secret", v)
		}
	}
	for name, want := range map[string]bool{
		"OPENAI_API_KEY": true, "GITHUB_PAT": true, "PAT": true, "COMPAT": false, "DBPASS": true, "DB_PASS": true, "PASSPHRASE": true, "GPG_PASSPHRASE": true,
		"MYSQL_PWD": true, "DBPWD": true, "PWD": false, "OLDPWD": false, "STRIPE_KEYS": true, "TLS_KEY_B64": true, "CERT_BASE64": true, "SSH_ASKPASS": false,
		"NO_BYPASS": false, "MY_CREDENTIAL": true, "AWS_CREDENTIALS": true, "foo_token": true, "PGPASSWORD": true, "apiKey": true, "PATH": false, "KEYBOARD": false,
		"HTPASSWD": true, "API_TOKENS": true, "DB_PASSWORDS": true, "CLIENT_SECRETS": true,
	} {
		if IsSecretName(name) != want {
			t.Errorf("IsSecretName(%s) = %v", name, !want)
		}
	}
	set := &Set{}
	set.AddNamed("SOME_KEY", t.TempDir()+"/id_rsa")
	set.AddNamed("GOOGLE_APPLICATION_CREDENTIALS", "~/google.json")
	set.AddNamed("HOME", "/home/someone-like-you")
	if len(set.values) > 0 {
		t.Errorf("paths are taken for secrets: %v", set.values)
	}
	set.AddNamed("AWS_SECRET", "/abc+DEF/0123456789")
	if got := set.Text("x /abc+DEF/0123456789 y"); got != "x [redacted] y" {
		t.Errorf("a secret that begins with a slash: %s", got)
	}
}

func TestPasswordsInsideOfValues(t *testing.T) {
	set := &Set{}
	set.AddNamed("DATABASE_URL", "postgres://ann:zzP%40ss%2Fword1@db/x?sslmode=off&api_key=zzquery+key%21&user=annabelle")
	set.AddNamed("DSN", "host=db password=zzinDSN123 user=annabelle")
	set.AddNamed("REMOTE", "https://ghp_zzzzzzzzzzzzzzzzzzzz@github.com/x")
	set.AddNamed("TLS_KEY_B64", base64.StdEncoding.EncodeToString([]byte("zz decoded key 1")))
	for _, text := range []string{
		"zzP%40ss%2Fword1", "zzP@ss/word1", base64.StdEncoding.EncodeToString([]byte("ann:zzP@ss/word1")), "zzquery+key%21", "zzquery key!", "zzinDSN123", "ghp_zzzzzzzzzzzzzzzzzzzz",
		base64.StdEncoding.EncodeToString([]byte("host=db password=zzinDSN123 user=annabelle")),
		"zz decoded key 1", base64.StdEncoding.EncodeToString([]byte("zz decoded key 1")),
	} {
		if got := set.Text("<" + text + ">"); got != "<"+Mask+">" {
			t.Errorf("%s became %s", text, got)
		}
	}
	if got := set.Text("annabelle at postgres://ann@db/x"); got != "annabelle at postgres://ann@db/x" {
		t.Errorf("too much is taken out: %s", got)
	}
	for address, want := range map[string]string{
		"http://u:pw@h/v1?key=k1&x=2":  "http://u:[redacted]@h/v1?key=[redacted]&x=2",
		"https://h/v1?x=1&api_key=abc": "https://h/v1?x=1&api_key=[redacted]",
		"http://h:11434/v1":            "http://h:11434/v1",
		"":                             "",
	} {
		if got := RedactURL(address); got != want {
			t.Errorf("URL(%q) = %q, want %q", address, got, want)
		}
	}
}

// TestStreamsKeepSecretsBack cuts texts with encoded secrets at random places.
func TestStreamsKeepSecretsBack(t *testing.T) {
	var all []string
	for _, s := range samples {
		all = append(all, s)
	}
	set := New(append(all, "zz1-xyz-longer", "xyzzy-1-zz1-x")...)
	var forms []func(string) string
	for _, name := range sortedKeys(encoders) {
		forms = append(forms, encoders[name])
	}
	shapes := sortedKeys(samples)
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			text.WriteString(rapid.SampledFrom([]string{"", "plain ", `\`, "'", "%", "&", "z", "zz", "zzz1-x", `"\u00`, "xyzzy-1-z", "<b>"}).Draw(t, "noise"))
			text.WriteString(rapid.SampledFrom(forms).Draw(t, "form")(samples[rapid.SampledFrom(shapes).Draw(t, "shape")]))
		}
		text.WriteString(rapid.SampledFrom([]string{"", " end", "zz", `\`, "xyz"}).Draw(t, "end"))
		whole := text.String()
		s := NewStream(set.Text, set.Hold)
		var got strings.Builder
		for rest := whole; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 9)).Draw(t, "cut")
			got.WriteString(s.Push(rest[:n]))
			rest = rest[n:]
		}
		got.WriteString(s.End())
		if want := set.Text(whole); strings.ReplaceAll(got.String(), Mask+Mask, Mask) != strings.ReplaceAll(want, Mask+Mask, Mask) && set.Text(got.String()) != got.String() {
			t.Fatalf("%q\nstreamed: %q\nwhole:    %q", whole, got.String(), want)
		}
	})
}

func TestStreamWithoutHold(t *testing.T) {
	s := NewStream(New("secret-value").Text, nil)
	if got := s.Push("a secret-") + s.Push("value b"); got != "" {
		t.Errorf("pushed out %q", got)
	}
	if got := s.End(); got != "a [redacted] b" {
		t.Errorf("at the end: %q", got)
	}
}

// TestTextIsLinear compares the time for a text with that for sixteen times as much: if the time were quadratic, it would be 256 times
// as long. A loaded machine may disturb either measurement, but not by that much.
func TestTextIsLinear(t *testing.T) {
	set := manySecrets(500)
	text := strings.Repeat(`{"a":"aaaaaaaaaaaaaaa\n\"b\u0041%20&amp;'\''sk-proj-aaaa\\\\`, 500)
	set.Text(text[:100])
	took := func(s string) time.Duration {
		best := time.Hour
		for range 3 {
			start := time.Now()
			set.Text(s)
			best = min(best, time.Since(start))
		}
		return best
	}
	small, large := took(text), took(strings.Repeat(text, 16))
	if large > 100*small {
		t.Errorf("%d KB take %v, sixteen times as much %v", len(text)>>10, small, large)
	}
}

func manySecrets(n int) *Set {
	r := rand.New(rand.NewPCG(1, 2))
	set := New()
	for range n {
		b := make([]byte, 32)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		set.Add("sk-proj-" + base64.RawURLEncoding.EncodeToString(b))
	}
	return set
}

func BenchmarkBuild(b *testing.B) {
	for b.Loop() {
		manySecrets(40).Text("x")
	}
}

func BenchmarkText(b *testing.B) {
	set := manySecrets(40)
	for name, text := range map[string]string{
		"plain": strings.Repeat("The quick brown fox jumps over the lazy dog. ", 25_000),
		"json":  strings.Repeat(`{"a": "line\nline \"quoted\"", "b": [1, 2, 3]}`+"\n", 25_000),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				set.Text(text)
			}
		})
	}
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// What is a secret because of its name is one in every way in which a name comes with a value; the name of a file is none in any of them.
func TestNamedSecretsAreTheSameEverywhere(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, value string
		want        bool
	}{{"API_KEY", "abcd-1234-efgh", true}, {"api_key", "abcd-1234-efgh", true}, {"API_KEY", dir + "/key", false}, {"API_KEY", "~/key.x1", false}, {"API_KEY", "short", false}, {"API_KEY", "required", false},
		{"COLOR", "abcd-1234-efgh", false}, {"SSH_ASKPASS", "abcd-1234-efgh", false}} {
		json := fmt.Sprintf("{%q: %q}", c.name, c.value)
		set, flags := &Set{}, FindFlagSecrets([]string{json})
		set.AddNamed(c.name, c.value)
		whole := New(json)
		for how, got := range map[string]bool{
			"AddNamed": set.Text(c.value) != c.value, "HasSecret": HasSecret(c.name, c.value), "FindFlagSecrets": slices.Contains(flags, c.value), "a document": whole.Text("x "+c.value+" x") != "x "+c.value+" x",
		} {
			if got != c.want {
				t.Errorf("%s: %s=%s: %v, want %v", how, c.name, c.value, got, c.want)
			}
		}
	}
}
