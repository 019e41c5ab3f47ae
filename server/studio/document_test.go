package studio_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"raddle.dev/server/studio"
)

// Nothing in the answers ends the element that has them, and nothing but the page's own script and style is markup.
func TestDocumentKeepsTextsAsTexts(t *testing.T) {
	hostile := "</script><script>alert(1)</script><!--<script></SCRIPT ><style>]]>\u2028&amp;"
	page, err := studio.NewDocument("</title>"+hostile, map[string]string{hostile: hostile})
	if err != nil {
		t.Fatal(err)
	}
	text := string(page)
	for mark, want := range map[string]int{`(?i)<script`: 2, `(?i)</script`: 2, `<!--`: 0, `(?i)</?title`: 2, `(?i)</?style`: 2, `src=|href=`: 0} {
		if got := len(regexp.MustCompile(mark).FindAllString(text[:strings.LastIndex(text, `<script type="module">`)], -1)); mark == `src=|href=` && got != want {
			t.Errorf("%s is %d times in the page, want %d", mark, got, want)
		}
		if mark == `src=|href=` {
			continue // the script has them as texts
		}
		if got := len(regexp.MustCompile(mark).FindAllString(text, -1)); got != want {
			t.Errorf("%s is %d times in the page, want %d", mark, got, want)
		}
	}
	inside := regexp.MustCompile(`(?s)id="shared-run">(.*?)</script>`).FindStringSubmatch(text)
	var got map[string]string
	if err := json.Unmarshal([]byte(inside[1]), &got); err != nil || got[hostile] != hostile {
		t.Errorf("the answers are %v, %v", got, err)
	}
}
