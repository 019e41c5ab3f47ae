package draw

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"image/png"
	"io"
	"strconv"

	"golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"

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
func WritePNG(w io.Writer, s graph.Structure, o Options) error {
	sc, err := buildScene(s, o)
	if err != nil {
		return err
	}
	width, height := int(sc.w)*pngScale, int(sc.h)*pngScale
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
	}
	imagedraw.Draw(c.img, c.img.Bounds(), image.NewUniform(parseColor(paperColor)), image.Point{}, imagedraw.Src)
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
type pngCanvas struct {
	img   *image.RGBA
	faces map[textStyle]font.Face
}

func (c *pngCanvas) drawFigure(f figure) {
	lines := flattenPath(f.path, pngScale)
	if f.fill != "" {
		fillShape(c.img, lines, parseColor(f.fill))
	}
	if f.stroke == "" {
		return
	}
	s := stroke{width: f.width * pngScale, round: f.round}
	if f.dash != nil {
		lines = dashPolylines(lines, f.dash, pngScale)
	}
	fillShape(c.img, s.strokeOutline(lines), parseColor(f.stroke))
}

func (c *pngCanvas) drawText(t caption) error {
	face, err := c.openFace(t.style)
	if err != nil {
		return err
	}
	d := font.Drawer{Dst: c.img, Src: image.NewUniform(parseColor(t.color)), Face: face}
	text := stripIgnorable(t.text)
	x := fixed.Int26_6(t.at.x * pngScale * 64)
	if !t.left {
		x -= d.MeasureString(text) / 2
	}
	d.Dot = fixed.Point26_6{X: x, Y: fixed.Int26_6(t.at.y * pngScale * 64)}
	d.DrawString(text)
	return nil
}

// stripIgnorable removes the characters that are never visible.
func stripIgnorable(s string) string {
	var out []rune
	for _, r := range s {
		if !isIgnorable(r) {
			out = append(out, r)
		}
	}
	return string(out)
}

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
