package spec

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// readAgent reads a config.yaml with triggers.
func readAgent(triggers string) (*Config, error) {
	return ParseConfig("config.yaml", []byte("name: a\ntriggers:\n"+triggers))
}

const everyTrigger = `
  - schedule: "0 7 * * 1-5"
    name: morning
    timezone: Europe/Berlin
    catch_up: 30m
    prompt: Write the report of {{date}}
  - webhook: github/issues
    secret: ${GITHUB_SECRET}
    signature: {header: X-Hub-Signature-256, prefix: "sha256="}
    id: X-GitHub-Delivery
    overlap: queue
    map: {prompt: "Look at {{issue.title}}"}
  - webhook: slack
    name: slack
    secret: ${SLACK_SECRET}
    signature: {header: X-Slack-Signature, prefix: "v0=", timestamp: X-Slack-Request-Timestamp, signed: "v0:{{timestamp}}:{{body}}"}
    map: {prompt: "{{event.text}}"}
  - webhook: gitlab
    name: gitlab
    token: ${GITLAB_TOKEN}
    token_header: X-Gitlab-Token
    map: {prompt: "{{object_kind}}"}
  - event: order.paid
    map: {prompt: "{{id}}"}
  - run: fetch failed
    map: {prompt: "{{run}} failed: {{error}}"}
`

func TestTriggers(t *testing.T) {
	c, err := readAgent(everyTrigger)
	if err != nil || len(c.Triggers) != 6 || len(c.Findings) > 0 {
		t.Fatalf("%v, %+v", err, c)
	}
	var words []string
	for _, tr := range c.Triggers {
		words = append(words, tr.Name+": "+tr.String()+", "+tr.Overlap)
	}
	want := `morning: schedule "0 7 * * 1-5" in Europe/Berlin, skip
webhook: webhook github/issues, queue
slack: webhook slack, allow
gitlab: webhook gitlab, allow
event: event order.paid, allow
run: run fetch failed, allow`
	if got := strings.Join(words, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s := c.Triggers[0].Schedule
	times, err := s.ParseTimes()
	if err != nil || s.CatchUp != 30*time.Minute || times.Next(time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)).UTC().Format(time.RFC3339) != "2026-11-30T06:00:00Z" {
		t.Errorf("the schedule is %+v", s)
	}
	if w := c.Triggers[1].Webhook; w.Secret != "GITHUB_SECRET" || w.Signature.Signed != "{{body}}" || w.Signature.Encoding != "hex" {
		t.Errorf("the webhook is %+v", w)
	}
	f, err := Parse("graph.yaml", []byte("name: a\nstart: x\nnodes: {}\ntriggers:\n  - schedule: '@daily'\n    state: {day: '{{date}}'}\n"), nil)
	if parsed, ok := errors.AsType[*ParseError](err); !ok || len(parsed.Findings) != 1 || parsed.Findings[0].Code != "no-nodes" {
		t.Errorf("the graph is %+v (%v)", f, err)
	}
}

// What is wrong in triggers is reported at once, with places, and without the text of a secret.
func TestWrongTriggers(t *testing.T) {
	for triggers, want := range map[string]string{
		"  - {}":                        "3:5 triggers[0]: missing field: an entry has one of `schedule`, `webhook`, `event`, `run`",
		"  - daily":                     "3:5 triggers[0]: invalid type: string \"daily\", expected a map",
		"  - schedule: '0 7 * *'":       "3:15 triggers[0].schedule: invalid value: `0 7 * *` is no schedule: it has 4 fields",
		"  - schedule: '0 0 30 2 *'":    "never comes",
		"  - schedule: 'CRON_TZ=UTC *'": "timezone: Europe/Berlin",
		"  - {schedule: '@daily', timezone: Mars/Olympus}":                                           "3:36 triggers[0].timezone: invalid value: `Mars/Olympus` is not a time zone",
		"  - {schedule: '@daily', catch_up: soon}":                                                   "3:36 triggers[0].catch_up: invalid value: `soon` is not a duration",
		"  - {schedule: '@daily', overlap: perhaps}":                                                 "unknown variant `perhaps`, expected one of `skip`, `queue`, `cancel`, `allow`",
		"  - {schedule: '@daily', event: x}":                                                         "the entry has `schedule`, too",
		"  - {schedule: '@daily', map: {prompt: x}}":                                                 "a schedule has nothing from which it could map",
		"  - {schedule: '@daily', prompt: '{{issue}}'}":                                              "{{issue}} has no value: a schedule has {{time}}, {{date}}, {{trigger}}",
		"  - {schedule: '@daily', state: {a: b}}":                                                    "the agent is no graph and has no state",
		"  - {schedule: '@daily', name: 'a b'}":                                                      "`a b`: a name has 1 to 60 letters",
		"  - schedule: '@daily'\n  - schedule: '@hourly'":                                            "4:5 triggers[1].name: invalid value: two triggers have the name `schedule`",
		"  - {event: x, prompt: y}":                                                                  "write `map: {prompt: ...}`",
		"  - {event: x, secret: '${A}'}":                                                             "it belongs to a trigger with `webhook`, and this one has `event`",
		"  - {event: 'a b'}":                                                                         "the name of an event has letters",
		"  - {webhook: a}":                                                                           "a webhook needs `secret` with `signature`, or `token`",
		"  - webhook: a\n    secret: hunter2hunter2\n    signature: {header: X}":                     "3:5 triggers[0].secret: invalid value: a secret does not belong into this file; write `secret: ${NAME}`",
		"  - {webhook: a, token: hunter2hunter2}":                                                    "a secret does not belong into this file; write `token: ${NAME}`",
		"  - {webhook: a, token: ''}":                                                                "it is empty; write `token: ${NAME}`",
		"  - {webhook: a, token: '${A}', secret: '${B}'}":                                            "the entry has a `secret`, too",
		"  - {webhook: a, token: '${A}', signature: {header: X}}":                                    "a request with a token is not signed",
		"  - {webhook: a, secret: '${A}'}":                                                           "missing field `signature`",
		"  - {webhook: a, secret: '${A}', signature: {encoding: hex}}":                               "triggers[0].signature: missing field `header`",
		"  - {webhook: a, secret: '${A}', signature: {header: 'X Y'}}":                               "`X Y` is not the name of a header",
		"  - {webhook: a, secret: '${A}', signature: {header: X, encoding: utf7}}":                   "unknown variant `utf7`, expected one of `hex`, `base64`",
		"  - {webhook: a, secret: '${A}', signature: {header: X, timestamp: T, signed: '{{body}}'}}": "{{timestamp}} is missing: what is not signed proves nothing",
		"  - {webhook: a, secret: '${A}', signature: {header: X, signed: '{{id}}'}}":                 "{{body}} is missing",
		"  - {webhook: a, secret: '${A}', signature: {header: X, signed: '{{body}}{{url}}'}}":        "{{url}} is none of {{timestamp}}, {{id}}, {{body}}",
		"  - {webhook: ../a, token: '${A}'}":                                                         "a path has words of letters",
		"  - {webhook: a//b, token: '${A}'}":                                                         "a path has words of letters",
		"  - {webhook: /a, token: '${A}'}":                                                           "a path has words of letters",
		"  - {webhook: 'a%2fb', token: '${A}'}":                                                      "a path has words of letters",
		"  - {webhook: a/./b, token: '${A}'}":                                                        "a path has words of letters",
		"  - {schedule: '@daily'}":                                                                   "triggers[0]: missing field `prompt`",
		"  - {event: x}":                                                                             "missing field `map`: a model has nothing to answer without a prompt",
		"  - {run: fetch}":                                                                           "write the name of an agent and how its run has ended",
		"  - {run: fetch finished}":                                                                  "write the name of an agent and how its run has ended",
		"  - {run: fetch done, timezone: UTC}":                                                       "it belongs to a trigger with `schedule`",
	} {
		_, err := readAgent(triggers + "\n")
		parsed, ok := errors.AsType[*ParseError](err)
		if !ok {
			t.Errorf("%s\nis accepted: %v", triggers, err)
			continue
		}
		var lines []string
		for _, f := range parsed.Findings {
			lines = append(lines, strings.TrimPrefix(f.Pos.String(), "config.yaml:")+" "+f.Message)
		}
		all := strings.Join(lines, "\n")
		if !strings.Contains(all, want) || strings.Contains(all, "hunter2") {
			t.Errorf("%s\n got %s\nwant %s", triggers, all, want)
		}
	}
	_, err := readAgent("  - {schedule: '0 7 * *', timezone: Mars, overlap: no, catch_up: x, prompt: y}\n  - {run: a, map: {prompt: y}}\n")
	if parsed, ok := errors.AsType[*ParseError](err); !ok || len(parsed.Findings) != 5 {
		t.Errorf("not all problems are reported at once: %v", err)
	}
	c, err := readAgent("  - {schedule: '0 7 1 * 1', timezon: UTC, prompt: x}\n")
	if err != nil || len(c.Findings) != 2 {
		t.Errorf("the findings are %+v (%v)", c, err)
	}
}
