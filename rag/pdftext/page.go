package pdftext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ledongthuc/pdf"
)

// maxFormDepth is the deepest nesting of forms, which are drawings that pages share.
const maxFormDepth = 16

// A document holds the data that the pages of one file share.
type document struct {
	ctx       context.Context
	maxBytes  int64
	work      int64 // remaining bytes of content that may be interpreted: a form can be drawn many times
	fonts     map[string]*font
	fontBytes int
	unknown   int // glyphs without a known text
	drawn     int // glyphs
}

// A state is the part of the graphics state that concerns text.
type state struct {
	ctm             matrix
	font            *font
	size            float64
	charSpace       float64
	wordSpace       float64
	horizontalScale float64
	leading         float64
	rise            float64
}

// A painter interprets content streams and hands the glyphs to a layout.
type painter struct {
	doc       *document
	layout    *layout
	state     state
	saved     []state
	text      matrix // position of the next glyph
	line      matrix // start of the line
	resources pdf.Value
}

// readPage returns the text of a page.
func (d *document) readPage(page, resources pdf.Value) (string, error) {
	p := painter{doc: d, layout: newLayout(), resources: resources, text: identity, line: identity,
		state: state{ctm: identity, horizontalScale: 1}}
	contents := page.Key("Contents")
	streams := []pdf.Value{contents}
	if contents.Kind() == pdf.Array {
		streams = nil
		for i := range contents.Len() {
			streams = append(streams, contents.Index(i))
		}
	}
	var all []byte
	for _, s := range streams {
		if s.Kind() != pdf.Stream {
			continue
		}
		data, err := d.readStream(s)
		if err != nil {
			return "", err
		}
		if int64(len(all)+len(data)) > d.maxBytes {
			return "", tooLarge("a page", d.maxBytes)
		}
		if all == nil {
			all = data
		} else {
			all = append(append(all, '\n'), data...)
		}
	}
	if err := p.paintStream(all, 0); err != nil {
		return "", err
	}
	if len(p.layout.lines) > maxLines {
		return "", errTooMuchWork
	}
	return p.layout.pageText(), nil
}

// maxLines is the most lines of a page.
const maxLines = 50_000

// maxFontBytes is the most bytes of the tables of all fonts.
const maxFontBytes = 16 << 20

// readFontStream returns the decoded bytes of a table of a font.
func (d *document) readFontStream(v pdf.Value) ([]byte, error) {
	data, err := d.readStream(v)
	if d.fontBytes += len(data); d.fontBytes > maxFontBytes {
		return nil, tooLarge("the tables of its fonts", maxFontBytes)
	}
	return data, err
}

// readStream returns the decoded bytes of a stream.
func (d *document) readStream(v pdf.Value) ([]byte, error) {
	parameters := v.Key("DecodeParms")
	for i := range parameters.Len() {
		if parameters.Index(i).Key("Columns").Int64() > maxColumns {
			return nil, errManyObjects
		}
	}
	if parameters.Key("Columns").Int64() > maxColumns {
		return nil, errManyObjects
	}
	r := v.Reader()
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, d.maxBytes+1))
	if int64(len(data)) > d.maxBytes {
		return nil, tooLarge("a stream", d.maxBytes)
	}
	if err != nil && len(data) > 0 && errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil // a stream without its checksum
	}
	return data, err
}

func (p *painter) paintStream(data []byte, depth int) error {
	if p.doc.work -= int64(len(data)) + 1000; p.doc.work < 0 {
		return errTooMuchWork
	}
	return readOperators(data, func(operator string, args []operand) error {
		if len(p.layout.lines) > maxLines {
			return errTooMuchWork
		}
		return p.applyOperator(operator, args, depth)
	})
}

// applyOperator executes one operator. Operands that are missing or of the wrong kind count as zero.
func (p *painter) applyOperator(operator string, args []operand, depth int) error {
	number := func(i int) float64 {
		if i < len(args) {
			return args[i].number
		}
		return 0
	}
	switch s := &p.state; operator {
	case "q":
		if len(p.saved) < 1000 {
			p.saved = append(p.saved, p.state)
		}
	case "Q":
		if n := len(p.saved) - 1; n >= 0 {
			p.state, p.saved = p.saved[n], p.saved[:n]
		}
	case "cm":
		s.ctm = matrixOf(args).multiply(s.ctm)
	case "BT":
		p.text = identity
		p.line = identity
	case "Tc":
		s.charSpace = number(0)
	case "Tw":
		s.wordSpace = number(0)
	case "Tz":
		s.horizontalScale = number(0) / 100
	case "TL":
		s.leading = number(0)
	case "Ts":
		s.rise = number(0)
	case "Tf":
		return p.setFont(args)
	case "Td":
		p.moveLine(number(0), number(1))
	case "TD":
		s.leading = -number(1)
		p.moveLine(number(0), number(1))
	case "Tm":
		p.line = matrixOf(args)
		p.text = p.line
	case "T*":
		p.moveLine(0, -s.leading)
	case "Tj":
		return p.showStrings(args)
	case "'":
		p.moveLine(0, -s.leading)
		return p.showStrings(args)
	case "\"":
		s.wordSpace, s.charSpace = number(0), number(1)
		p.moveLine(0, -s.leading)
		return p.showStrings(args)
	case "TJ":
		if len(args) > 0 {
			return p.showStrings(args[0].list)
		}
	case "Do":
		return p.paintForm(args, depth)
	}
	return nil
}

func (p *painter) moveLine(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.multiply(p.line)
	p.text = p.line
}

func (p *painter) setFont(args []operand) error {
	if len(args) < 2 {
		return nil
	}
	p.state.size = args[1].number
	fonts := p.resources.Key("Font")
	key := args[0].text + " " + fonts.String() // names the object of the font
	f, ok := p.doc.fonts[key]
	if !ok {
		var err error
		if f, err = newFont(fonts.Key(args[0].text), p.doc.readFontStream); err != nil {
			return fmt.Errorf("font %s: %w", args[0].text, err)
		}
		p.doc.fonts[key] = f
	}
	p.state.font = f
	return p.doc.ctx.Err()
}

// showStrings draws strings, with displacements between them in thousandths of the size.
func (p *painter) showStrings(list []operand) error {
	s := &p.state
	if s.font == nil {
		return nil
	}
	for _, item := range list {
		if item.kind == numberOperand {
			p.text = matrix{1, 0, 0, 1, -item.number / 1000 * s.size * s.horizontalScale, 0}.multiply(p.text)
			continue
		}
		if item.kind != stringOperand {
			continue
		}
		for rest := item.text; rest != ""; {
			code, length := s.font.nextCode(rest)
			rest = rest[length:]
			p.showGlyph(s.font.lookupGlyph(code, length), code == ' ' && length == 1)
			if p.doc.drawn%4096 == 0 && p.doc.ctx.Err() != nil {
				return p.doc.ctx.Err()
			}
		}
	}
	return nil
}

func (p *painter) showGlyph(g glyph, isSpace bool) {
	s := &p.state
	p.doc.drawn++
	if g.text == "" {
		p.doc.unknown++
	}
	advance := g.width*s.size + s.charSpace
	if isSpace {
		advance += s.wordSpace
	}
	advance *= s.horizontalScale
	at := matrix{s.size * s.horizontalScale, 0, 0, s.size, 0, s.rise}.multiply(p.text).multiply(s.ctm)
	p.text = matrix{1, 0, 0, 1, advance, 0}.multiply(p.text)
	if at.isVisible() {
		p.layout.addGlyph(at, advance/(s.size*s.horizontalScale), g.text)
	}
}

// paintForm draws a form. Other objects, such as pictures, have no text.
func (p *painter) paintForm(args []operand, depth int) error {
	if len(args) == 0 || depth >= maxFormDepth {
		return nil
	}
	form := p.resources.Key("XObject").Key(args[0].text)
	if form.Kind() != pdf.Stream || form.Key("Subtype").Name() != "Form" {
		return nil
	}
	data, err := p.doc.readStream(form)
	if err != nil {
		return err
	}
	inner := *p
	inner.saved = nil
	if resources := form.Key("Resources"); resources.Kind() == pdf.Dict {
		inner.resources = resources
	}
	if values := form.Key("Matrix"); values.Len() == 6 {
		var m matrix
		for i := range m {
			m[i] = values.Index(i).Float64()
		}
		inner.state.ctm = m.multiply(inner.state.ctm)
	}
	return inner.paintStream(data, depth+1)
}

// A matrix is the transformation [a b 0; c d 0; e f 1] of row vectors.
type matrix [6]float64

var identity = matrix{1, 0, 0, 1, 0, 0}

func matrixOf(args []operand) matrix {
	var m matrix
	for i := range min(len(args), len(m)) {
		m[i] = args[i].number
	}
	return m
}

// multiply returns the transformation m followed by n.
func (m matrix) multiply(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

// isVisible reports whether something that m transforms can be seen.
func (m matrix) isVisible() bool {
	for _, v := range m {
		if math.IsNaN(v) || math.Abs(v) > 1e7 {
			return false
		}
	}
	return math.Hypot(m[0], m[1]) > 1e-6 && math.Hypot(m[2], m[3]) > 1e-6
}
