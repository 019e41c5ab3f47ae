from reportlab.pdfgen.canvas import Canvas
c = Canvas("reportlab.pdf", invariant=1, pagesize=(400, 300))
c.setFont("Times-Roman", 12)
y = 270
c.drawString(40, y, "The spaces of this line are glyphs of the font.")
# words one by one, at their positions, without spaces
for line in ("Words are drawn one by one", "and so are those of this line."):
    y -= 16; x = 40
    for w in line.split():
        c.drawString(x, y, w); x += c.stringWidth(w, "Times-Roman", 12) + 3
# bold first, then the rest of the line
y -= 32
c.setFont("Times-Bold", 12)
b = c.stringWidth("Bold", "Times-Bold", 12)
c.drawString(40 + c.stringWidth("This is ", "Times-Roman", 12), y, "Bold")
c.setFont("Times-Roman", 12)
c.drawString(40, y - 32, "A later line.")
c.drawString(40, y, "This is")
c.drawString(40 + c.stringWidth("This is ", "Times-Roman", 12) + b + 3, y, "text.")
# overprinted, letter-spaced, scaled
y -= 64
c.setFont("Helvetica", 12)
c.drawString(40, y, "Printed twice"); c.drawString(40.3, y, "Printed twice")
y -= 20
t = c.beginText(40, y); t.setCharSpace(3); t.textOut("SPACED OUT"); c.drawText(t)
y -= 20
t = c.beginText(40, y); t.setCharSpace(0); t.setHorizScale(60); t.textOut("Narrow letters"); c.drawText(t)
# a form that is drawn on the page
c.beginForm("stamp"); c.setFont("Helvetica", 10); c.drawString(0, 0, "From a form."); c.endForm()
c.saveState(); c.translate(250, 40); c.doForm("stamp"); c.restoreState()
# upside down
c.saveState(); c.translate(380, 290); c.rotate(180); c.setFont("Helvetica", 10); c.drawString(0, 0, "Upside down."); c.restoreState()
c.showPage(); c.save()
