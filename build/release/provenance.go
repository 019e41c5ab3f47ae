package main

import (
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
)

// A statement says in the form of in-toto which files were built, and in that of SLSA how.
type statement struct {
	Type          string     `json:"_type"`
	Subject       []subject  `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     provenance `json:"predicate"`
}

type subject struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

type provenance struct {
	BuildDefinition struct {
		BuildType            string            `json:"buildType"`
		ExternalParameters   map[string]string `json:"externalParameters"`
		ResolvedDependencies []subject         `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// An envelope is a signed statement, in the form of DSSE.
type envelope struct {
	PayloadType string           `json:"payloadType"`
	Payload     string           `json:"payload"`
	Signatures  []map[string]any `json:"signatures"`
}

const payloadType = "application/vnd.in-toto+json"

// writeProvenance writes a signed statement about the files of a list of checksums: from which commit they were built,
// and with what.
func writeProvenance(root, list, file string, key *ecdsa.PrivateKey) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			return fmt.Errorf("%s: %q is not a line of a list of checksums", list, line)
		}
		s.Subject = append(s.Subject, subject{Name: fields[1], Digest: map[string]string{"sha256": fields[0]}})
	}
	commit, err := readGit(root, "rev-parse", "HEAD")
	if err != nil {
		return err
	}
	origin := os.Getenv("RADDLE_SOURCE")
	if origin == "" {
		origin = "https://raddle.dev"
	}
	d := &s.Predicate.BuildDefinition
	d.BuildType = "https://raddle.dev/release/v1" // make release, as docs/release.md describes it
	d.ExternalParameters = map[string]string{"command": "make release", "releases": os.Getenv("RADDLE_RELEASES"), "key": os.Getenv("RADDLE_RELEASE_KEY")}
	d.ResolvedDependencies = []subject{{URI: "git+" + origin, Digest: map[string]string{"gitCommit": commit}}}
	b := &s.Predicate.RunDetails.Builder
	b.ID = "https://raddle.dev/release/local"
	if server, run := os.Getenv("GITHUB_SERVER_URL"), os.Getenv("GITHUB_RUN_ID"); server != "" && run != "" {
		b.ID = server + "/" + os.Getenv("GITHUB_REPOSITORY") + "/actions/runs/" + run
	}
	b.Version = map[string]string{"go": runtime.Version()}
	payload, err := json.Marshal(s)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(encodeForSignature(payload))
	signature, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
	if err != nil {
		return err
	}
	out, err := json.MarshalIndent(envelope{
		PayloadType: payloadType,
		Payload:     base64.StdEncoding.EncodeToString(payload),
		Signatures:  []map[string]any{{"sig": base64.StdEncoding.EncodeToString(signature)}},
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(out, '\n'), 0o644)
}

// encodeForSignature returns the bytes that DSSE signs: the type and the payload with their lengths.
func encodeForSignature(payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}
