package llmtest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// The credentials and the region that [Bedrock] takes, a session token that was good yesterday, and its API key.
const (
	AWSKeyID   = "AKIAEXAMPLE000000001"
	AWSSecret  = "secret/of+the/example/account/0000000001"
	AWSToken   = "session-token-of-the-example/+=="
	AWSExpired = "session-token-that-has-expired/+=="
	AWSRegion  = "eu-central-1"
	BedrockKey = "bedrock-api-key-0000000001"
)

// mostSkew is by how much the clock of a client may be off.
const mostSkew = 5 * time.Minute

const signedTime = "20060102T150405Z"

// checkAuthorization returns why AWS would refuse the credentials of a request, "" if it takes them. It computes the
// signature of Signature Version 4 from what has arrived
// (docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
func checkAuthorization(r *http.Request, body []byte) string {
	header := r.Header.Get("Authorization")
	if key, is := strings.CutPrefix(header, "Bearer "); is {
		if key != BedrockKey {
			return "Authentication failed: Please make sure your API Key is valid."
		}
		return ""
	}
	rest, is := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	if !is {
		return "Missing Authentication Token"
	}
	fields := map[string]string{}
	for _, field := range strings.Split(rest, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	id, scope, _ := strings.Cut(fields["Credential"], "/")
	at := r.Header.Get("X-Amz-Date")
	when, err := time.Parse(signedTime, at)
	now := time.Now().UTC()
	switch {
	case id != AWSKeyID:
		return "The security token included in the request is invalid."
	case r.Header.Get("X-Amz-Security-Token") == AWSExpired:
		return "The security token included in the request is expired"
	case r.Header.Get("X-Amz-Security-Token") != AWSToken && r.Header.Get("X-Amz-Security-Token") != "":
		return "The security token included in the request is invalid."
	case err != nil || scope != at[:8]+"/"+AWSRegion+"/bedrock/aws4_request":
		return "Credential should be scoped to a valid region, and the signature to the service bedrock: " + scope
	case now.Sub(when) > mostSkew:
		return "Signature expired: " + at + " is now earlier than " + now.Add(-mostSkew).Format(signedTime) + " (" + now.Format(signedTime) + " - 5 min.)"
	case when.Sub(now) > mostSkew:
		return "Signature not yet current: " + at + " is still later than " + now.Add(mostSkew).Format(signedTime)
	}
	names := strings.Split(fields["SignedHeaders"], ";")
	for _, required := range []string{"host", "x-amz-date"} {
		if !slices.Contains(names, required) {
			return "the signature does not cover the header " + required
		}
	}
	canonical := canonicalRequest(r, names, body)
	digest := sha256.Sum256([]byte(canonical))
	text := "AWS4-HMAC-SHA256\n" + at + "\n" + scope + "\n" + hex.EncodeToString(digest[:])
	key := []byte("AWS4" + AWSSecret)
	for _, part := range append(strings.Split(scope, "/"), text) {
		code := hmac.New(sha256.New, key)
		code.Write([]byte(part))
		key = code.Sum(nil)
	}
	if hex.EncodeToString(key) != fields["Signature"] {
		// The real server quotes what it has signed, with the session token in it.
		return "The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been\n'" + canonical + "'"
	}
	return ""
}

// canonicalRequest returns the form of a request that is signed.
func canonicalRequest(r *http.Request, names []string, body []byte) string {
	sum := sha256.Sum256(body)
	var b strings.Builder
	b.WriteString(r.Method + "\n" + escapeAgain(r.URL.EscapedPath()) + "\n" + r.URL.Query().Encode() + "\n")
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strings.TrimSpace(r.Header.Get("Content-Length"))
		}
		b.WriteString(name + ":" + strings.Join(strings.Fields(value), " ") + "\n")
	}
	b.WriteString("\n" + strings.Join(names, ";") + "\n" + hex.EncodeToString(sum[:]))
	return b.String()
}

// escapeAgain escapes each segment of an escaped path, as every service but S3 requires it.
func escapeAgain(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
	}
	return strings.Join(segments, "/")
}
