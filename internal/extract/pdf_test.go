package extract

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// smallPDF lacks a cross-reference table, which readers can do without.
const smallPDF = `%PDF-1.4
1 0 obj <</Type/Catalog/Pages 2 0 R/Lang(en-GB)>> endobj
2 0 obj <</Type/Pages/Kids[3 0 R]/Count 1>> endobj
3 0 obj <</Type/Page/Parent 2 0 R/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>> endobj
4 0 obj <</Length 9999>> stream
BT /F1 20 Tf 72 700 Td (A heading) Tj /F1 10 Tf 0 -40 Td (The text of the page, which is plain English.) Tj ET
endstream endobj
5 0 obj <</Type/Font/Subtype/Type1/BaseFont/Helvetica>> endobj
trailer <</Root 1 0 R/Info<</Title(The title)>>>>
`

func TestExtractPDF(t *testing.T) {
	for _, in := range []Input{
		{Name: "a.pdf", Data: []byte(smallPDF)},
		{Name: "a", Data: []byte(smallPDF)},
		{Name: "download", MediaType: "application/pdf", Data: []byte("\r\n" + smallPDF)},
		{Name: "a.html", MediaType: "text/html", Data: []byte(smallPDF)}, // servers lie, bytes don't
	} {
		x := mustExtract(t, in)
		want := "A heading\n\nThe text of the page, which is plain English."
		if x.Title != "The title" || x.Body != want || x.MediaType != "application/pdf" || x.FileType != "pdf" ||
			x.Lang != "en" {
			t.Errorf("Extract(%s) = %+v, want its title, text, type and language", in.Name, x)
		}
		if want := []document.Page{{Label: "1"}}; !slices.Equal(x.Pages, want) {
			t.Errorf("Extract(%s) has pages %v, want %v", in.Name, x.Pages, want)
		}
		if got := titles(x); len(got) != 1 || got[0] != "# A heading @ A heading" {
			t.Errorf("Extract(%s) has headings %q, want one", in.Name, got)
		}
	}
}

func TestExtractDamagedPDF(t *testing.T) {
	for name, tt := range map[string]struct {
		data string
		kind error
	}{
		"nothing in it": {"%PDF-1.7\n", errkind.Corrupt},
		"no text":       {strings.Replace(smallPDF, "/Length 9999", "/Filter/DCTDecode", 1), errkind.Corrupt},
		"encrypted": {strings.Replace(smallPDF, "/Info", "/Encrypt<</Filter/Standard/V 1/R 2/O()/U()>>/Info", 1),
			errkind.Unsupported},
	} {
		x, err := Extract(t.Context(), Input{Name: "a.pdf", Data: []byte(tt.data)})
		if x != nil || !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), "PDF") {
			t.Errorf("%s: Extract = %v, %v, want kind %v", name, x, err, tt.kind)
		}
	}
}
