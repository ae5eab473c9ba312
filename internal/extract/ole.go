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
		{"WordDocument", oldWord},
		{"PowerPoint Document", oldPowerPoint},
		{"Workbook", oldExcel},
		{"Book", oldExcel},
		{"__substg1.0_", oldOutlook},
		{"VisioDocument", oldVisio},
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
	return unsupported("office document in an old format: save it in a current one")
}
