package load

import (
	"fmt"
	"strings"
	"testing"
)

// TestPageText reads pages as generators of documentation write them.
func TestPageText(t *testing.T) {
	for _, c := range []struct{ name, page, want string }{
		{"a permalink", `<h2>Bind<a class="headerlink" href="#bind" title="Permalink to this heading">¶</a></h2><p>text</p>`, "## Bind\n\ntext"},
		{"a permalink with words", `<h2>Bind<a class="x headerlink" href="#bind">Link to this heading</a></h2>`, "## Bind"},
		{"a permalink of another generator", `<h2>Bind <a class="anchor" href="#bind">#</a></h2>`, "## Bind"},
		{"a heading that is a link", `<h2><a class="anchor" href="#bind">Bind</a></h2>`, "## Bind"},
		{"a link", `<p>see <a href="../up.html#x" title="Up">the <b>upper</b> page</a>, and <a href="https://example.com">that</a></p>`,
			"see the **upper** page, and that"},
		{"a picture", `<p>A <img src="data:image/png;base64,AAAA" alt="red dot"> here <a href="x"><img src="y" alt="home"></a></p>`, "A red dot here home"},
		{"hidden text", `<p>a</p><p hidden>b<p>c</p><div style="color: red; DISPLAY : none"><p>d</p></div><span style="visibility:hidden">e</span><p aria-hidden="true">f</p><p>g</p>`,
			"a\n\nc\n\ng"},
		{"a page that a script shows", `<body style="display:none"><main hidden><p>a</p></main></body>`, "a"},
		{"unknown elements", `<my-app><p>a</p><x-tag>b</x-tag></my-app>`, "a\n\nb"},
		{"deep", strings.Repeat("<div>", 3000) + "<p>a</p>" + strings.Repeat("</div>", 3000), "a"},
		{"scripts", `<p>a</p><script>b</script><style>c</style><script src="x"></script><p>d</p><template>e</template><nav>f</nav><!-- g -->`, "a\n\nd"},
		{"a table", `<table><tr><th colspan=1000000>A<th>B<tr><td>1<td>2</table>`, "| A | B |\n|---|---|\n| 1 | 2 |"},
		{"code", "<pre><code class=\"language-go\">x := 1\n\ny</code></pre>", "```\nx := 1\n\ny\n```"},
	} {
		got, err := pageText(c.page, 1<<20)
		if strings.TrimSpace(got) != c.want || err != nil {
			t.Errorf("%s: %v, text\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// TestLargePages compares pages that are read in parts with their paragraphs.
func TestLargePages(t *testing.T) {
	var page, want strings.Builder
	page.WriteString("<html><head><title>Numbers</title></head><body><div>")
	want.WriteString("# Numbers\n\n")
	for i := range 30_000 {
		fmt.Fprintf(&page, "<p>Paragraph <b>%d</b>.", i)
		fmt.Fprintf(&want, "Paragraph **%d**.\n\n", i)
	}
	got, err := pageText(page.String(), 32<<20)
	if err != nil || strings.TrimSpace(got) != strings.TrimSpace(want.String()) {
		t.Errorf("error %v, text of %d bytes, want %d: %.500s", err, len(got), want.Len(), got)
	}
	if _, err := pageText(page.String(), 1000); err == nil {
		t.Error("a page with too much text is read")
	}
	if _, err := pageText("<p "+strings.Repeat("a ", maxToken)+">", 32<<20); err == nil {
		t.Error("a tag without an end is read")
	}
}
