package studio

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"

	"raddle.dev/internal/base/pattern"
)

// sharedRun is the id of the element that has the answers in a page without a server: src/share.ts reads it.
const sharedRun = "shared-run"

// document is the page without a server: its content policy, title, styles, answers and script. A browser runs and
// applies nothing in it but what the policy names by its hash, and requests nothing.
const document = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-%[1]s'; style-src 'sha256-%[2]s'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>%[3]s · raddle</title>
<style>%[4]s</style>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="` + sharedRun + `">%[5]s</script>
<script type="module">%[6]s</script>
</body>
</html>
`

// markup matches what a browser takes for markup inside of a script: its end, and what makes it look for another end.
var markup = pattern.CompileLater(`(?i)<(!--|/?script)`)

// NewDocument returns the page of one run as a file that needs no server. answers is what src/share.ts reads.
func NewDocument(title string, answers any) ([]byte, error) {
	script, err := dist.ReadFile("dist/studio.js")
	if err != nil {
		return nil, err
	}
	style, err := dist.ReadFile("dist/studio.css")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(answers) // with < as an escape: nothing in it is markup
	if err != nil {
		return nil, err
	}
	script = markup().ReplaceAll(script, []byte(`\x3c$1`)) // in texts and patterns: JavaScript has no other place for it
	var b bytes.Buffer
	fmt.Fprintf(&b, document, hashOf(script), hashOf(style), html.EscapeString(title), style, text, script)
	return b.Bytes(), nil
}

// hashOf returns the hash of a text as a content policy names it.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return base64.StdEncoding.EncodeToString(sum[:])
}
