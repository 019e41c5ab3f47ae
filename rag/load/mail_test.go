package load

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

// readTextOf returns the text of a file with a name and what is said about it.
func readTextOf(t *testing.T, name, text string) (Document, error) {
	t.Helper()
	_, ext, _ := strings.Cut(name, ".")
	f := &File{data: []byte(text), entry: Entry{ext: ext, o: &Options{}}}
	return f.Text(t.Context())
}

// Mail is read as people read it: decoded, without the other form of the same text, with its attachments by their kind.
func TestMail(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte("Bring the marabouzander to the café."))
	csv := base64.StdEncoding.EncodeToString([]byte("name;price\nkolibri;\"3,50\"\n"))
	inner := "Subject: Inside\nContent-Type: text/plain; charset=iso-8859-1\nContent-Transfer-Encoding: 8bit\n\nf\xfcr dich\n"
	message := strings.ReplaceAll(`From: =?utf-8?q?J=C3=B6rg?= <j@example.com>
To: team@example.com
Subject: =?utf-8?B?`+base64.StdEncoding.EncodeToString([]byte("Grüße aus Łódź"))+`?=
Date: Mon, 2 Mar 2026 10:00:00 +0100
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="a"

--a
Content-Type: multipart/alternative; boundary="b"

--b
Content-Type: text/plain; charset=utf-8
Content-Transfer-Encoding: base64

`+encoded+`
--b
Content-Type: text/html

<p>the same as HTML</p>
--b--
--a
Content-Type: text/html; charset=utf-8
Content-Transfer-Encoding: quoted-printable

<p>caf=C3=A9 is 5 &lt; 7</p>
--a
Content-Type: text/csv; name="prices.csv"
Content-Transfer-Encoding: base64

`+csv+`
--a
Content-Type: image/png; name="a.png"
Content-Transfer-Encoding: base64

iVBORw0KGgoAAAANSUhEUgAAAAEAAAABAAAAAAA=
--a
Content-Type: message/rfc822

`+inner+`
--a--
`, "\n", "\r\n")
	doc, err := readTextOf(t, "m.eml", message)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Grüße aus Łódź\n", "From: Jörg <j@example.com>\n", "marabouzander to the café.", "café is 5 < 7", "## prices.csv", "price: 3,50", "## a.png", "# Inside", "für dich",
	} {
		if !strings.Contains(doc.Text, want) {
			t.Errorf("%q is missing in:\n%s", want, doc.Text)
		}
	}
	for _, bad := range []string{"the same as HTML", "iVBOR", encoded, "--a"} {
		if strings.Contains(doc.Text, bad) {
			t.Errorf("%q is in:\n%s", bad, doc.Text)
		}
	}
	if doc.Ext != "md" || !strings.Contains(doc.Warning, "png") {
		t.Errorf("extension %q, warning %q", doc.Ext, doc.Warning)
	}
}

// Messages that are cut off, nested without end or no messages at all are read in part or refused.
func TestHostileMail(t *testing.T) {
	nested := "the end"
	for range 2000 {
		nested = "Content-Type: message/rfc822\r\n\r\n" + nested
	}
	many := "Content-Type: multipart/mixed; boundary=x\r\n\r\n" + strings.Repeat("--x\r\n\r\ntext\r\n", 5000) + "--x--"
	for name, text := range map[string]string{"nested": nested, "many": many, "empty": "", "no message": "no colon here\n\ntext"} {
		if doc, err := readTextOf(t, "m.eml", text); err == nil {
			t.Errorf("%s: read as %.100q", name, doc.Text)
		}
	}
	doc, err := readTextOf(t, "m.eml", "Subject: cut\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\nthe beginning")
	if err != nil || !strings.Contains(doc.Text, "the beginning") {
		t.Errorf("%q, %v", doc.Text, err)
	}
}

// What is damaged is said, and what came before it is read.
func TestDamagedPart(t *testing.T) {
	doc, err := readTextOf(t, "m.eml", "Subject: x\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8gd29ybGQ=!!!!")
	if err != nil || !strings.Contains(doc.Text, "hello world") || !strings.Contains(doc.Warning, "damaged") {
		t.Errorf("%q, warning %q, %v", doc.Text, doc.Warning, err)
	}
}

func FuzzMail(f *testing.F) {
	f.Add("Subject: x\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n\r\ntext\r\n--x--")
	f.Add("Content-Type: text/plain; charset=koi8-r\nContent-Transfer-Encoding: base64\n\n0g==")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = readTextOf(t, "m.eml", text)
	})
}

// A notebook is its texts, its code and what that has written, and none of its pictures.
func TestNotebook(t *testing.T) {
	picture := strings.Repeat("iVBORw0KGgo", 9000)
	text := fmt.Sprintf(`{"nbformat": 4, "metadata": {"kernelspec": {"language": "python"}}, "cells": [
		{"cell_type": "markdown", "source": ["# Sales\n", "of 2026"]},
		{"cell_type": "code", "source": "print(1)", "outputs": [
			{"output_type": "stream", "name": "stdout", "text": ["one\n", "two\n"]},
			{"output_type": "display_data", "data": {"image/png": %q, "text/plain": "<Figure size 640x480>"}},
			{"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["\u001b[0;31m"]}]},
		{"cell_type": "raw", "source": "raw text"}]}`, picture)
	doc, err := readTextOf(t, "n.ipynb", text)
	want := "# Sales\nof 2026\n\n```python\nprint(1)\n```\n\none\ntwo\n\n<Figure size 640x480>\n\nValueError: no\n\nraw text\n\n"
	if err != nil || doc.Text != want || doc.Ext != "md" {
		t.Errorf("%q, %v, want %q", doc.Text, err, want)
	}
	for _, bad := range []string{"", "{}", "[1]", `{"cells": 3}`, `{"worksheets": []}`, `{"cells": [{"source": 3}]}`} {
		if doc, err := readTextOf(t, "n.ipynb", bad); err == nil {
			t.Errorf("%q is read as %q", bad, doc.Text)
		}
	}
}

// The separator of a table is what its first rows agree on.
func TestSeparators(t *testing.T) {
	for text, want := range map[string]string{
		"name;price\nkolibri;\"3,50\"\n":                  "name: kolibri\nprice: 3,50\n\n",
		"name;price\nkolibri;3,50\nemu;4,75\n":            "name: kolibri\nprice: 3,50\n\nname: emu\nprice: 4,75\n\n",
		"a,b\n1,2\n":                                      "a: 1\nb: 2\n\n",
		"a,b\n\"x;y;z\",2\n":                              "a: x;y;z\nb: 2\n\n",
		"a\tb\n1,5\t2\n":                                  "a: 1,5\nb: 2\n\n",
		"a|b|c\n1|2|3\n":                                  "a: 1\nb: 2\nc: 3\n\n",
		"sep=;\r\na;b\r\n1;2\r\n":                         "a: 1\nb: 2\n\n",
		"a,b\n1,2\n3\n":                                   "a: 1\nb: 2\n\na: 3\n\n",
		"text\nonly one column, with a comma; and more\n": "text: only one column\nwith a comma; and more\n\n",
		"title;note\nx;a, b, c\ny;d, e\n":                 "title: x\nnote: a, b, c\n\ntitle: y\nnote: d, e\n\n",
	} {
		doc, err := readTextOf(t, "t.csv", text)
		if err != nil || doc.Text != want {
			t.Errorf("%q is read as %q, %v, want %q", text, doc.Text, err, want)
		}
	}
}

// Signs that HTML writes as entities are signs in the text.
func TestEntitiesOfPages(t *testing.T) {
	page := "<p>5 &lt; 7 &amp;&amp; a &gt; b</p><table><tr><th>x</th></tr><tr><td>&lt;T&gt;</td></tr></table>" +
		"<p><code>${x:<em>&lt;digits&gt;</em>}</code> and &amp;lt;</p><pre>if (a &lt; b) &amp;lt;</pre>"
	doc, err := readTextOf(t, "p.html", page)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"5 < 7 && a > b", "<T>", "<digits>", "and &lt;", "if (a < b) &lt;"} {
		if !strings.Contains(doc.Text, want) {
			t.Errorf("%q is missing in:\n%s", want, doc.Text)
		}
	}
}
