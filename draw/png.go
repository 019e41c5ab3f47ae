package draw

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
	"golang.org/x/image/vector"
	"raddle.dev/graph"
)

// Limits of a PNG. The second keeps its pixels below 256 MiB.
const (
	pngScale  = 2
	maxSide   = 16 << 10
	maxPixels = 64 << 20
)

// WritePNG writes s as a picture at twice the size of the SVG, for sharp screens. It returns an error for a text with a
// character that the built-in font (Latin, Greek and Cyrillic) does not have, and for a picture above 16384 pixels a
// side or 64 million in all.
// Nothing is written if it returns one of these errors.
func WritePNG(w io.Writer, s graph.Structure, o Options) error {
	sc, err := buildScene(s, o)
	if err != nil {
		return err
	}
	width := int(sc.w) * pngScale
	height := int(sc.h) * pngScale
	if max(width, height) > maxSide || width*height > maxPixels {
		return fmt.Errorf("draw: png: the picture of graph %q would have %d x %d pixels, the limit is %d a side and %d in all: use svg",
			s.Name, width, height, maxSide, maxPixels)
	}
	if err := checkGlyphs(sc); err != nil {
		return err
	}
	c := &pngCanvas{
		img:   image.NewRGBA(image.Rect(0, 0, width, height)),
		faces: make(map[textStyle]font.Face),
		theme: o.Theme,
	}
	imagedraw.Draw(c.img, c.img.Bounds(), image.NewUniform(c.color(paperColor)), image.Point{}, imagedraw.Src)
	for _, g := range sc.groups {
		for _, f := range g.figs {
			c.drawFigure(f)
		}
		for _, t := range g.texts {
			if err := c.drawText(t); err != nil {
				return err
			}
		}
	}
	return png.Encode(w, c.img)
}

// checkGlyphs finds a text that the built-in font cannot show.
func checkGlyphs(sc *scene) error {
	m, err := newTextMeasurer()
	if err != nil {
		return err
	}
	for _, g := range sc.groups {
		for _, t := range g.texts {
			for _, r := range t.text {
				if !isIgnorable(r) && m.glyphIndex(t.style.face, r) == 0 {
					return fmt.Errorf("draw: png: the label %q needs the character %q (%U), which the built-in font does not have: use svg",
						t.text, r, r)
				}
			}
		}
	}
	return nil
}

// pngCanvas paints on an image.
// It holds a font face for each style, because creating a face is slow.
type pngCanvas struct {
	img   *image.RGBA
	faces map[textStyle]font.Face
	theme Theme
}

// color returns a colour of the light theme in the theme of the picture.
func (c *pngCanvas) color(light string) color.RGBA { return parseColor(c.theme.colorIn(light)) }

// drawFigure fills a path and then draws its line: the line is an area, which is filled, too.
func (c *pngCanvas) drawFigure(f figure) {
	lines := flattenPath(f.path, pngScale)
	if f.fill != "" {
		fillShape(c.img, lines, c.color(f.fill))
	}
	if f.stroke == "" {
		return
	}
	s := stroke{width: f.width * pngScale, round: f.round}
	if f.dash != nil {
		lines = dashPolylines(lines, f.dash, pngScale)
	}
	fillShape(c.img, s.strokeOutline(lines), c.color(f.stroke))
}

// drawText draws one line of text, with its middle or its left end at the place of the caption.
func (c *pngCanvas) drawText(t caption) error {
	face, err := c.openFace(t.style)
	if err != nil {
		return err
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(c.color(t.color)), Face: face}
	text := stripIgnorable(t.text)
	x := fixed.Int26_6(t.at.x * pngScale * 64)
	if !t.left {
		x -= d.MeasureString(text) / 2
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(t.at.y * pngScale * 64)}
	// Hyphens are drawn by hand: see drawHyphen.
	for _, part := range strings.SplitAfter(text, "-") {
		part, hyphen := strings.CutSuffix(part, "-")
		d.DrawString(part)
		if hyphen {
			c.drawHyphen(&d)
		}
	}
	return nil
}

// drawHyphen draws a hyphen at the dot and moves on. That of the built-in font is as long as a dash.
func (c *pngCanvas) drawHyphen(d *font.Drawer) {
	advance := d.MeasureString("-")
	bounds, _ := d.BoundString("-")
	side := advance / 4
	y := (bounds.Min.Y + bounds.Max.Y) / 2
	half := (bounds.Max.Y - bounds.Min.Y) / 2
	at := func(v fixed.Int26_6) float64 { return float64(v) / 64 }
	corner := rect{at(d.Dot.X + side), at(y - half), at(advance - 2*side), at(2 * half)}
	fillShape(c.img, flattenPath(roundRect(corner, 0, 0), 1), d.Src.(*image.Uniform).C.(color.RGBA))
	d.Dot.X += advance
}

// stripIgnorable removes the characters that are never visible.
// The font would draw a box for each of them.
func stripIgnorable(s string) string {
	return strings.Map(func(r rune) rune {
		if isIgnorable(r) {
			return -1
		}
		return r
	}, s)
}

// openFace returns the font face of a style at the scale of the picture, without hinting: the same
// text has the same shape at every place.
func (c *pngCanvas) openFace(s textStyle) (font.Face, error) {
	if f, ok := c.faces[s]; ok {
		return f, nil
	}
	parsed, err := s.face.parse()
	if err != nil {
		return nil, fmt.Errorf("draw: parse the built-in font: %w", err)
	}
	f, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: float64(s.size * pngScale), DPI: 72, Hinting: font.HintingNone})
	if err != nil {
		return nil, fmt.Errorf("draw: set up the built-in font: %w", err)
	}
	c.faces[s] = f
	return f, nil
}

// parseColor reads one of this package's colours, #rrggbb.
func parseColor(s string) color.RGBA {
	n, err := strconv.ParseUint(s[1:], 16, 32)
	if err != nil {
		return color.RGBA{A: 255}
	}
	return color.RGBA{R: uint8(n >> 16), G: uint8(n >> 8), B: uint8(n), A: 255}
}

// bandHeight bounds the buffer of the rasterizer: large shapes are filled band by band.
// The rasterizer needs memory for its whole area, which for a tall frame would be that of the
// picture.
const bandHeight = 512

// polyline is a chain of points.
// In a closed one the last point is connected to the first.
type polyline struct {
	points []pt
	closed bool
}

// flattenPath turns curves into short straight pieces and scales them.
// The pieces are short enough that no corner is visible at this scale. A closed outline does not
// repeat its first point at the end.
func flattenPath(p path, scale float64) []polyline {
	var out []polyline
	var cur *polyline
	for _, o := range p {
		switch o.cmd {
		case 'M':
			out = append(out, polyline{points: []pt{o.p[0]}})
			cur = &out[len(out)-1]
		case 'L':
			cur.points = append(cur.points, o.p[0])
		case 'C':
			cur.points = appendCurve(cur.points, o.p, scale)
		case 'Z':
			cur.closed = true
		}
	}
	for i := range out {
		out[i].points = scalePoints(out[i].points, scale)
		if n := len(out[i].points); out[i].closed && n > 1 && out[i].points[0] == out[i].points[n-1] {
			out[i].points = out[i].points[:n-1]
		}
	}
	return out
}

// scalePoints multiplies the points and drops those that do not differ from the one before.
func scalePoints(points []pt, scale float64) []pt {
	out := points[:0]
	for _, q := range points {
		q = pt{q.x * scale, q.y * scale}
		if len(out) == 0 || pointDistance(out[len(out)-1], q) > 1e-6 {
			out = append(out, q)
		}
	}
	return out
}

// appendCurve adds points on a Bézier curve from the last point, with the control points c[0] and
// c[1] and the end c[2]. A longer curve gets more points. Each point is found by dividing the lines
// between the control points (de Casteljau's method).
func appendCurve(points []pt, c [3]pt, scale float64) []pt {
	a := points[len(points)-1]
	length := pointDistance(a, c[0]) + pointDistance(c[0], c[1]) + pointDistance(c[1], c[2])
	// The length is that of the control lines, which the curve does not exceed.
	steps := min(200, 4+int(length*scale/6))
	for i := 1; i <= steps; i++ {
		t := float64(i) / float64(steps)
		ab := interpolatePoint(a, c[0], t)
		bc := interpolatePoint(c[0], c[1], t)
		cd := interpolatePoint(c[1], c[2], t)
		points = append(points, interpolatePoint(interpolatePoint(ab, bc, t), interpolatePoint(bc, cd, t), t))
	}
	return points
}

// fillShape fills the area within the lines, each of which is closed. Areas that overlap must turn the same way.
// An area that turned the other way would cut a hole: the rasterizer adds up the turns around each
// pixel.
func fillShape(dst *image.RGBA, lines []polyline, c color.RGBA) {
	lo := pt{math.Inf(1), math.Inf(1)}
	hi := pt{math.Inf(-1), math.Inf(-1)}
	for _, l := range lines {
		for _, q := range l.points {
			lo = pt{math.Min(lo.x, q.x), math.Min(lo.y, q.y)}
			hi = pt{math.Max(hi.x, q.x), math.Max(hi.y, q.y)}
		}
	}
	if lo.x > hi.x {
		return
	}
	bounds := image.Rect(int(math.Floor(lo.x)), int(math.Floor(lo.y)), int(math.Ceil(hi.x))+1, int(math.Ceil(hi.y))+1)
	bounds = bounds.Intersect(dst.Bounds())
	src := image.NewUniform(c)
	var r vector.Rasterizer
	// Only the part of the shape that is on the image is filled.
	for y := bounds.Min.Y; y < bounds.Max.Y; y += bandHeight {
		band := image.Rect(bounds.Min.X, y, bounds.Max.X, min(y+bandHeight, bounds.Max.Y))
		r.Reset(band.Dx(), band.Dy())
		for _, l := range lines {
			addLine(&r, l, band.Min)
		}
		r.Draw(dst, band, src, image.Point{})
	}
}

// addLine adds an area to the rasterizer, whose coordinates begin at the origin of its band.
func addLine(r *vector.Rasterizer, l polyline, origin image.Point) {
	for i, q := range l.points {
		x := float32(q.x - float64(origin.X))
		y := float32(q.y - float64(origin.Y))
		if i == 0 {
			r.MoveTo(x, y)
		} else {
			r.LineTo(x, y)
		}
	}
	r.ClosePath()
}

// dashPolylines cuts lines into strokes.
// A closed line is cut from its first point all the way around, back to that point.
func dashPolylines(lines []polyline, dash []float64, scale float64) []polyline {
	var out []polyline
	for _, l := range lines {
		points := l.points
		if l.closed && len(points) > 0 {
			points = append(points[:len(points):len(points)], points[0])
		}
		out = append(out, dashLine(points, dash, scale)...)
	}
	return out
}

// dashLine cuts one line. dash has the lengths of strokes and gaps in turn, as in SVG; at is the
// index of the current one, and left is how much of it remains. A stroke continues around corners.
func dashLine(points []pt, dash []float64, scale float64) []polyline {
	var out []polyline
	at := 0
	left := dash[0] * scale
	var cur []pt
	if len(points) > 0 {
		cur = []pt{points[0]}
	}
	for i := 1; i < len(points); i++ {
		a := points[i-1]
		b := points[i]
		// Each round ends one stroke or gap on this piece of the line.
		for d := pointDistance(a, b); d > left; d = pointDistance(a, b) {
			a = interpolatePoint(a, b, left/d)
			if at%2 == 0 {
				out = append(out, polyline{points: scalePoints(append(cur, a), 1)}) // a dot is a single point
			}
			at = (at + 1) % len(dash)
			left = dash[at] * scale
			cur = []pt{a}
		}
		left -= pointDistance(a, b)
		cur = append(cur, b)
	}
	if at%2 == 0 && len(cur) > 1 {
		out = append(out, polyline{points: scalePoints(cur, 1)})
	}
	return out
}

// stroke is a pen.
// Its covered area is computed here, because the rasterizer can only fill.
type stroke struct {
	width float64
	round bool // the ends of a line are round
}

// strokeOutline returns the area that the pen covers along the lines.
// It returns a quadrilateral for each piece of a line, and a disc for each round end. They overlap,
// so all of them turn the same way.
func (s stroke) strokeOutline(lines []polyline) []polyline {
	var out []polyline
	for _, l := range lines {
		n := len(l.points)
		if s.round && n > 0 {
			out = append(out, s.discAt(l.points[0]))
			if last := l.points[n-1]; last != l.points[0] {
				out = append(out, s.discAt(last))
			}
		}
		left, right := s.offsetLines(l)
		for i := 1; i < len(left); i++ {
			out = append(out, orientClockwise(polyline{points: []pt{left[i-1], left[i], right[i], right[i-1]}, closed: true}))
		}
	}
	return out
}

// offsetLines returns the two lines on both sides of l, at half the width. At each point both lie on the bisector of
// the angle, so the pieces between neighbours fit together without gap or overlap.
func (s stroke) offsetLines(l polyline) (left, right []pt) {
	p := l.points
	n := len(p)
	if n < 2 {
		return nil, nil
	}
	count := n
	if l.closed {
		count++
	}
	for i := range count {
		j := i % n
		before := j - 1
		after := j + 1
		if l.closed {
			before = (j + n - 1) % n
			after = (j + 1) % n
		}
		normal := bisectorAt(p, max(before, 0), j, min(after, n-1))
		h := s.width / 2
		left = append(left, pt{p[j].x + normal.x*h, p[j].y + normal.y*h})
		right = append(right, pt{p[j].x - normal.x*h, p[j].y - normal.y*h})
	}
	return left, right
}

// bisectorAt returns the direction across a line at point j, long enough to keep the width in the corner.
// before and after are the indexes of the neighbours; at an end of a line, one of them is j itself.
func bisectorAt(p []pt, before, j, after int) pt {
	a := unitNormal(p[before], p[j])
	b := unitNormal(p[j], p[after])
	if a == (pt{}) {
		a = b // the line begins at j
	}
	if b == (pt{}) {
		b = a // the line ends at j
	}
	// Both normals have the length 1, so their sum points along the bisector.
	m := pt{a.x + b.x, a.y + b.y}
	l2 := m.x*m.x + m.y*m.y
	if l2 < 0.25 { // a turn by more than 150 degrees: no corner that sharp occurs, do not draw a spike
		return b
	}
	return pt{2 * m.x / l2, 2 * m.y / l2}
}

// unitNormal returns the unit vector to the left of the way from a to b.
// It has no length if the points are the same.
func unitNormal(a, b pt) pt {
	d := pointDistance(a, b)
	if d == 0 {
		return pt{}
	}
	return pt{(b.y - a.y) / d, -(b.x - a.x) / d}
}

// discAt returns the area of a round end: a circle as wide as the pen.
func (s stroke) discAt(at pt) polyline {
	r := s.width / 2
	l := flattenPath(ellipsePath(rect{at.x - r, at.y - r, s.width, s.width}), 1)[0]
	return orientClockwise(l)
}

// orientClockwise makes an area turn clockwise, so that overlapping ones do not cancel each other.
func orientClockwise(l polyline) polyline {
	sum := 0.0
	for i, q := range l.points {
		next := l.points[(i+1)%len(l.points)]
		sum += q.x*next.y - next.x*q.y
	}
	if sum < 0 {
		slices.Reverse(l.points)
	}
	return l
}
