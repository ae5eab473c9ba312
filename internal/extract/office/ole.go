package office

import (
	"bytes"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// Names of formats that are not read, for messages, and what to do.
const (
	OldWord       = "Word document in the old format (.doc): save it as .docx"
	OldExcel      = "Excel workbook in the old format (.xls): save it as .xlsx"
	OldPowerPoint = "PowerPoint presentation in the old format (.ppt): save it as .pptx"
	OldOutlook    = "Outlook message (.msg): save it as .eml"
	Visio         = "Visio drawing: export it as PDF"
	BinaryExcel   = "Excel workbook in binary format (.xlsb): save it as .xlsx"
)

// OLE returns the error that names the format of a compound file (MS-CFB), the
// container of the office formats before 2007. The names of its streams tell.
func OLE(data []byte) error {
	for _, f := range [...]struct{ stream, what string }{
		{"EncryptedPackage", ""},
		{"WordDocument", OldWord},
		{"PowerPoint Document", OldPowerPoint},
		{"Workbook", OldExcel},
		{"Book", OldExcel},
		{"__substg1.0_", OldOutlook},
		{"VisioDocument", Visio},
	} {
		name := make([]byte, 0, 2*len(f.stream))
		for _, c := range []byte(f.stream) {
			name = append(name, c, 0) // UTF-16
		}
		switch {
		case !bytes.Contains(data, name):
		case f.what == "":
			return plain.Locked("office document")
		default:
			return plain.Unsupported(f.what)
		}
	}
	return plain.Unsupported("office document in an old format: save it in a current one")
}
