package load

import "testing"

func TestDatesOfSheets(t *testing.T) {
	sheet := func(cells string) string {
		return "<worksheet><sheetData><row>" + cells + "</row></sheetData></worksheet>"
	}
	const styles = `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="[$-407]dddd, d. mmmm yyyy &quot;o'clock&quot;;@"/><numFmt numFmtId="165" formatCode="[h]:mm:ss"/>
		<numFmt numFmtId="166" formatCode="#,##0.00 &quot;days&quot;"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs>
		<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="22"/><xf numFmtId="21"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/></cellXfs></styleSheet>`
	cells := `<c><v>45000</v></c><c s="0"><v>45000</v></c><c s="1"><v>45000</v></c><c s="2"><v>45000.75</v></c><c s="3"><v>0.5</v></c><c s="4" t="n"><v>1</v></c>` +
		`<c s="5"><v>1.5</v></c><c s="6"><v>45000</v></c><c s="1"><v>-3</v></c><c s="1"><v>1e300</v></c><c s="1"><v>soon</v></c><c s="99"><v>7</v></c><c s="1" t="str"><v>45000</v></c>`
	const texts = "45000\n45000\n2023-03-15\n2023-03-15 18:00:00\n12:00:00\n1900-01-01\n1.5\n45000\n-3\n1e300\nsoon\n7\n45000\n"
	for name, c := range map[string]struct{ workbook, want string }{
		"from 1900": {workbook, "## Staff\n\n" + texts},
		"from 1904": {`<workbook><workbookPr date1904="1"/><sheets><sheet name="Mac" id="b"/></sheets></workbook>`, "## Mac\n\n" +
			"45000\n45000\n2027-03-16\n2027-03-16 18:00:00\n12:00:00\n1904-01-02\n1.5\n45000\n-3\n1e300\nsoon\n7\n45000\n"},
	} {
		text, err := sheetsOnly(makeArchive(t, "xl/workbook.xml", c.workbook, "xl/_rels/workbook.xml.rels", relations, "xl/styles.xml", styles, "xl/worksheets/sheet2.xml", sheet(cells)), 1<<20)
		if err != nil || text != c.want {
			t.Errorf("%s: %v\n%q, want\n%q", name, err, text, c.want)
		}
	}
}
