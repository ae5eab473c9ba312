package extract

import (
	"bytes"
	"fmt"

	"knowhow/internal/errkind"
)

// oleFormat returns the error that names the format of a compound file (MS-CFB),
// the container of the office formats before 2007. The names of its streams tell.
func oleFormat(data []byte) error {
	for _, f := range [...]struct{ stream, what string }{
		{"EncryptedPackage", ""},
		{"WordDocument", "Word document in the old format (.doc): save it as .docx"},
		{"PowerPoint Document", "PowerPoint presentation in the old format (.ppt): save it as .pptx"},
		{"Workbook", "Excel workbook in the old format (.xls): save it as .xlsx"},
		{"Book", "Excel workbook in the old format (.xls): save it as .xlsx"},
		{"__substg1.0_", "Outlook message (.msg): save it as .eml"},
		{"VisioDocument", "Visio drawing (.vsd): export it as PDF"},
	} {
		name := make([]byte, 0, 2*len(f.stream))
		for _, c := range []byte(f.stream) {
			name = append(name, c, 0) // UTF-16
		}
		if !bytes.Contains(data, name) {
			continue
		}
		if f.what == "" {
			return locked("office document")
		}
		return fmt.Errorf("%s: %w", f.what, errkind.Unsupported)
	}
	return unsupported("office document in an old format")
}
