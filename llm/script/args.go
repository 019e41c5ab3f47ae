package script

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"raddle.dev/internal/base/strictyaml"
)

// parseArguments converts a YAML mapping to JSON and keeps the order of keys and the
// digits of numbers.
func (l *loader) parseArguments(n *yaml.Node) json.RawMessage {
	if n = l.resolve(n); n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode {
		l.ReportFault(n, "", "expected the arguments as a mapping, found %s", describeNode(n))
		return nil
	}
	var b bytes.Buffer
	l.writeJSON(&b, n)
	return b.Bytes()
}

func (l *loader) writeJSON(b *bytes.Buffer, n *yaml.Node) {
	if n = l.resolve(n); n == nil {
		b.WriteString("null")
		return
	}
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if strictyaml.IsBroken(key) {
				continue
			}
			if key.ShortTag() == "!!merge" {
				l.ReportFault(key, "", "merge keys are not supported here")
			}
			if b.Bytes()[b.Len()-1] != '{' {
				b.WriteByte(',')
			}
			writeQuoted(b, key.Value)
			b.WriteByte(':')
			l.writeJSON(b, n.Content[i+1])
		}
		b.WriteByte('}')
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, item := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			l.writeJSON(b, item)
		}
		b.WriteByte(']')
	default:
		l.writeScalar(b, n)
	}
}

func (l *loader) writeScalar(b *bytes.Buffer, n *yaml.Node) {
	switch n.ShortTag() {
	case "!!null":
		b.WriteString("null")
	case "!!bool":
		b.WriteString(strings.ToLower(n.Value))
	case "!!str", "!!timestamp":
		writeQuoted(b, n.Value)
	case "!!int", "!!float":
		if json.Valid([]byte(n.Value)) {
			b.WriteString(n.Value) // keeps all digits
			return
		}
		if v, err := strconv.ParseInt(n.Value, 0, 64); err == nil {
			b.WriteString(strconv.FormatInt(v, 10))
		} else if v, err := strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(v, 0) && !math.IsNaN(v) {
			b.WriteString(strconv.FormatFloat(v, 'g', -1, 64))
		} else {
			l.ReportFault(n, "", "the number %s has no form in JSON; put quotes around it if it is text", n.Value)
		}
	default:
		l.ReportFault(n, "", "a value with the tag %s has no form in JSON", n.ShortTag())
	}
}

// writeQuoted writes s as JSON, without the escapes that are meant for HTML.
func writeQuoted(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if enc.Encode(s) == nil { // a string cannot fail
		b.Truncate(b.Len() - 1) // the line break
	}
}

// argumentsNode converts JSON to a YAML mapping on one line.
func argumentsNode(args json.RawMessage) (*yaml.Node, error) {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	return jsonNode(dec)
}

func jsonNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: yaml.FlowStyle}
		if v == '[' {
			n.Kind = yaml.SequenceNode
			n.Tag = "!!seq"
		}
		for dec.More() {
			item, err := jsonNode(dec) // object keys are strings and are read in the same way
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err := dec.Token() // the closing bracket
		return n, err
	case string:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: v, Style: yaml.DoubleQuotedStyle}, nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(v.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: v.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: strconv.FormatBool(v)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
