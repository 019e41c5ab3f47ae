package modeltest

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/png"
)

// pictureColour is the colour of the picture, as a person names it.
const pictureColour = "red"

// drawPicture returns a PNG of one colour, large enough for models that refuse the smallest ones.
func drawPicture() []byte {
	const side = 64
	p := image.NewPaletted(image.Rect(0, 0, side, side), color.Palette{color.RGBA{R: 220, A: 255}})
	var b bytes.Buffer
	_ = png.Encode(&b, p) // a buffer takes everything
	return b.Bytes()
}

// documentWord is the only word of the document.
const documentWord = "marigold"

// writeDocument returns a PDF with one page and one word.
func writeDocument() []byte {
	text := "BT /F1 36 Tf 40 90 Td (" + documentWord + ") Tj ET"
	objects := []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 300 200] /Resources << /Font << /F1 4 0 R >> >> /Contents 5 0 R >>",
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(text), text),
	}
	var b, table bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	fmt.Fprintf(&table, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", table.String(), len(objects)+1, start)
	return b.Bytes()
}
