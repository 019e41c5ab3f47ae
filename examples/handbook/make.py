#!/usr/bin/env python3
"""Makes the PDF and the Word file of this example, the same bytes every time. Run it in its own directory; only Python is needed."""

import zipfile
from xml.sax.saxutils import escape

EXPENSES = [
    ["Expenses", "",
     "Pay with the company card where you can. For everything else keep the receipt",
     "and hand it in within thirty days; after that the bakery cannot pay it back.", "",
     "Travel", "",
     "Trains are booked in second class. A flight needs the consent of the shop's",
     "manager and is paid only where the train takes longer than six hours.",
     "For your own car the bakery pays 35 cents a kilometre."],
    ["Meals and hotels", "",
     "On a journey of more than eight hours a meal allowance of 28 euros is paid.",
     "Hotels are paid up to 110 euros a night; in Munich and Hamburg up to 140.", "",
     "Tools and shoes", "",
     "The bakery pays one pair of safety shoes a year, up to 90 euros, and the",
     "cleaning of aprons. Knives are the property of the bakery."],
]

SAFETY = [
    ("Heading1", "Safety in the bakehouse"),
    ("", "Everybody who works at the ovens is trained once a year. The training is in January and counts as working time."),
    ("Heading2", "Ovens and burns"),
    ("", "Gloves are worn whenever a tray leaves an oven. Cool a burn under running lukewarm water for ten minutes, and tell the shift "
         "leader, however small it is. Every burn is written into the accident book beside the first-aid box."),
    ("Heading2", "Flour dust"),
    ("", "Flour in the air can explode. Sweep never with compressed air; use the vacuum cleaner with the red sticker. Masks hang at the "
         "entrance of the flour store and must be worn inside."),
    ("Heading2", "Fire"),
    ("", "The assembly point is the car park behind the bakehouse. Nobody goes back for belongings. The extinguishers are checked every "
         "two years by a company from outside."),
]


def pdf(pages):
    objects = ["<< /Type /Catalog /Pages 2 0 R >>",
               "<< /Type /Pages /Count %d /Kids [%s] >>" % (len(pages), " ".join("%d 0 R" % (4 + 2 * i) for i in range(len(pages)))),
               "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"]
    for i, lines in enumerate(pages):
        shown = " ".join("(%s) Tj T*" % line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)") for line in lines)
        text = "BT /F1 12 Tf 16 TL 72 760 Td %s ET" % shown
        objects.append("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
                       % (5 + 2 * i))
        objects.append("<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text))
    out, places = "%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += "%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += "xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1) + "".join("%010d 00000 n \n" % p for p in places)
    out += "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return out.encode("latin-1")


def docx(path, paragraphs):
    word = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    body = "".join("<w:p>%s<w:r><w:t xml:space=\"preserve\">%s</w:t></w:r></w:p>"
                   % ("<w:pPr><w:pStyle w:val=\"%s\"/></w:pPr>" % style if style else "", escape(text)) for style, text in paragraphs)
    styles = "".join("<w:style w:type=\"paragraph\" w:styleId=\"Heading%d\"><w:name w:val=\"heading %d\"/></w:style>" % (n, n) for n in (1, 2))
    head = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
    types = "application/vnd.openxmlformats-officedocument.wordprocessingml."
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
    package = "http://schemas.openxmlformats.org/package/2006/"
    files = {
        "[Content_Types].xml": "<Types xmlns=\"%scontent-types\"><Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-"
        "package.relationships+xml\"/><Override PartName=\"/word/document.xml\" ContentType=\"%sdocument.main+xml\"/><Override PartName=\""
        "/word/styles.xml\" ContentType=\"%sstyles+xml\"/></Types>" % (package, types, types),
        "_rels/.rels": "<Relationships xmlns=\"%srelationships\"><Relationship Id=\"r1\" Type=\"%sofficeDocument\" Target=\"word/document.xml\"/>"
        "</Relationships>" % (package, office),
        "word/_rels/document.xml.rels": "<Relationships xmlns=\"%srelationships\"><Relationship Id=\"r1\" Type=\"%sstyles\" Target=\"styles.xml\"/>"
        "</Relationships>" % (package, office),
        "word/document.xml": "<w:document xmlns:w=\"%s\"><w:body>%s</w:body></w:document>" % (word, body),
        "word/styles.xml": "<w:styles xmlns:w=\"%s\">%s</w:styles>" % (word, styles),
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as z:
        for name, text in files.items():
            z.writestr(zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0)), head + text, zipfile.ZIP_DEFLATED)


with open("documents/expenses.pdf", "wb") as f:
    f.write(pdf(EXPENSES))
docx("documents/safety.docx", SAFETY)
