package extract

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// A zipEntry is a file in an archive that a test makes.
type zipEntry struct{ name, text string }

func zipOf(t testing.TB, files ...zipEntry) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range files {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, NonUTF8: !utf8.ValidString(f.name)})
		if err == nil {
			_, err = w.Write([]byte(f.text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func gzipOf(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// partsOf returns the bodies of the documents in a file by their names.
func partsOf(ctx context.Context, in Input) (map[string]string, error) {
	parts := map[string]string{}
	err := Parts(ctx, in, func(name string) bool { return !strings.HasSuffix(name, ".skip") }, func(p Part) error {
		if p.Err == nil {
			parts[p.Name] = p.Body
		}
		return nil
	})
	return parts, err
}

func TestParts(t *testing.T) {
	nested := []byte("deep")
	for range maxNesting + 2 {
		nested = zipOf(t, zipEntry{"a.zip", string(nested)})
	}
	deepGzip := []byte("deep")
	for range maxNesting + 2 {
		deepGzip = gzipOf(t, deepGzip)
	}
	mbox := "From a@b Mon Jan  1 00:00:00 2024\nFrom: a\nSubject: s\n\nHello.\n"
	many := make([]zipEntry, maxParts+1)
	for i := range many {
		many[i].name = fmt.Sprint(i)
	}
	encrypted := zipOf(t, zipEntry{"a.txt", "secret"})
	for _, sig := range []string{"PK\x03\x04", "PK\x01\x02"} {
		i := bytes.Index(encrypted, []byte(sig)) + len(sig) + map[bool]int{true: 2, false: 4}[sig == "PK\x03\x04"]
		encrypted[i] |= 1
	}
	for _, tt := range []struct {
		name string
		in   Input
		want map[string]string
		kind error
	}{
		{"a file", Input{Name: "a.md", Data: []byte("# A")}, map[string]string{"": "# A"}, nil},
		{"gzip", Input{Name: "a.md.gz", Data: gzipOf(t, []byte("# A"))}, map[string]string{"": "# A"}, nil},
		{"gzip with another name", Input{Name: "a.txt", Data: gzipOf(t, []byte("text"))}, map[string]string{"": "text"},
			nil},
		{"gzip of two members", Input{Name: "a.txt.gz",
			Data: append(gzipOf(t, []byte("one ")), gzipOf(t, []byte("two"))...)}, map[string]string{"": "one two"},
			nil},
		{"truncated gzip", Input{Name: "a.txt.gz", Data: gzipOf(t, bytes.Repeat([]byte("one two\n"), 1000))[:50]}, nil,
			nil},
		{"gzip without data", Input{Name: "a.txt.gz", Data: []byte("\x1f\x8b\b\x00\x00\x00\x00\x00\x00\x03")}, nil,
			errkind.Corrupt},
		{"gzip of binary data", Input{Name: "a.gz", Data: gzipOf(t, []byte("\x89PNG\r\n\x1a\n"))}, nil,
			errkind.Unsupported},
		{"gzip of a tar archive", Input{Name: "a.tgz", Data: gzipOf(t, append(make([]byte, 257), "ustar"...))}, nil,
			errkind.Unsupported},
		{"gzip of an archive", Input{Name: "a.zip.gz", Data: gzipOf(t, zipOf(t, zipEntry{"b.txt", "b"}))},
			map[string]string{"b.txt": "b"}, nil},
		{"gzip in gzip", Input{Name: "a.gz", Data: deepGzip}, nil, errkind.TooLarge},
		{"archive", Input{Name: "a.zip", Data: zipOf(t, zipEntry{"d/a.txt", "a"}, zipEntry{"d/", ""},
			zipEntry{"b.png", "\x89PNG\r\n"}, zipEntry{"x.skip", "x"},
			zipEntry{"in.zip", string(zipOf(t, zipEntry{"c.txt", "c"}, zipEntry{"y.skip", "y"}))},
			zipEntry{"m.mbox", mbox}, zipEntry{"l.txt.gz", string(gzipOf(t, []byte("log")))})},
			map[string]string{"d/a.txt": "a", "in.zip/c.txt": "c", "m.mbox/1": "From: a\n\nHello.", "l.txt.gz": "log"},
			nil},
		{"names", Input{Name: "a.zip", Data: zipOf(t, zipEntry{"../../etc/passwd", "1"}, zipEntry{"/abs.txt", "2"},
			zipEntry{`win\dir\a.txt`, "3"}, zipEntry{"a\nb.txt", "4"}, zipEntry{"abs.txt", "twice"},
			zipEntry{"\x81.txt", "5"}, zipEntry{"..", "6"})},
			map[string]string{"etc/passwd": "1", "abs.txt": "2", "win/dir/a.txt": "3", "ab.txt": "4", "ü.txt": "5"},
			nil},
		{"archive without documents", Input{Name: "a.zip", Data: zipOf(t, zipEntry{"b.png", "\x89PNG\r\n"})}, nil,
			errkind.Unsupported},
		{"empty archive", Input{Name: "a.zip", Data: zipOf(t)}, nil, errkind.Unsupported},
		{"archive with a password", Input{Name: "a.zip", Data: encrypted}, nil, errkind.Unsupported},
		{"truncated archive", Input{Name: "a.zip", Data: zipOf(t, zipEntry{"a.txt", "a"})[:40]}, nil, errkind.Corrupt},
		{"truncated archive with another name", Input{Name: "a.bin", Data: zipOf(t, zipEntry{"a.txt", "a"})[:40]}, nil,
			errkind.Corrupt},
		{"truncated document with another name", Input{Name: "report", Data: docxOf(t, paragraphs("x"))[:300]}, nil,
			errkind.Corrupt},
		{"archive that is damaged at the start", Input{Name: "a.zip",
			Data: append([]byte("\x00\x01\x02\x03"), zipOf(t, zipEntry{"a.txt", "a"})[4:]...)}, nil, errkind.Corrupt},
		{"gzip that is damaged at the start", Input{Name: "a.txt.gz",
			Data: append([]byte("\x00\x01\x02\x03"), gzipOf(t, []byte("a"))[4:]...)}, nil, errkind.Corrupt},
		{"archive of a document that is not compressed",
			Input{Name: "a.zip", Data: storedZip(t, "a.docx", docxOf(t, paragraphs("x")))},
			map[string]string{"a.docx": "x"}, nil},
		{"archive of damaged files", Input{Name: "a.zip",
			Data: damageZip(t, zipOf(t, zipEntry{"a.txt", "apples"}), "a.txt")}, nil, errkind.Corrupt},
		{"archives inside each other", Input{Name: "a.zip", Data: nested}, nil, errkind.TooLarge},
		{"many files", Input{Name: "a.zip", Data: zipOf(t, many...)}, nil, errkind.TooLarge},
		{"program", Input{Name: "a.jar", Data: zipOf(t, zipEntry{"a.txt", "a"})}, nil, errkind.Unsupported},
		{"archive with another name", Input{Name: "a.txt", Data: zipOf(t, zipEntry{"a.txt", "a"})},
			map[string]string{"a.txt": "a"}, nil},
		{"mail with the name of a mailbox", Input{Name: "a.mbox", Data: []byte("plain text")},
			map[string]string{"": "plain text"}, nil},
		{"text with the name of a mail", Input{Name: "a.eml", Data: []byte("plain text")},
			map[string]string{"": "plain text"}, nil},
		{"text with the name of an archive", Input{Name: "a.zip", Data: []byte("plain text")},
			map[string]string{"": "plain text"}, nil},
		{"manual page that includes another one", Input{Name: "a.1", Data: []byte(".so man1/b.1\n")}, nil,
			errkind.Unsupported},
		{"text with the name of a manual page", Input{Name: "notes.1", Data: []byte("plain text")},
			map[string]string{"": "plain text"}, nil},
		{"mail without an extension", Input{Name: "1700.M1P2.host:2,S",
			Data: []byte("Return-Path: <a@b>\nFrom: a\nSubject: x\n\nHi.")}, map[string]string{"": "From: a\n\nHi."},
			nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := partsOf(t.Context(), tt.in)
			if tt.kind != nil {
				if !errors.Is(err, tt.kind) {
					t.Errorf("Parts = %v, %v, want kind %v", got, err, tt.kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tt.want == nil {
				if len(got) != 1 || !strings.HasPrefix(got[""], "one two\n") {
					t.Errorf("Parts = %v, want the data before the end", got)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// storedZip returns an archive with one file that is not compressed.
func storedZip(t testing.TB, name string, data []byte) []byte {
	t.Helper()
	return packageOf(t, name, string(data))
}

// damageZip changes a byte of the packed data of a file in an archive.
func damageZip(t testing.TB, data []byte, name string) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Clone(data)
	for _, f := range z.File {
		if f.Name != name {
			continue
		}
		at, err := f.DataOffset()
		if err != nil {
			t.Fatal(err)
		}
		data[at+int64(f.CompressedSize64)/2] ^= 0x55
	}
	return data
}

// encryptZip marks a file in an archive as encrypted.
func encryptZip(t testing.TB, data []byte, name string) []byte {
	t.Helper()
	data = bytes.Clone(data)
	for sig, at := range map[string]int{"PK\x03\x04": 30, "PK\x01\x02": 46} { // offset of the name (APPNOTE.TXT, 4.3)
		for i := 0; ; i++ {
			n := bytes.Index(data[i:], []byte(sig))
			if n < 0 {
				break
			}
			if i += n; bytes.HasPrefix(data[i+at:], []byte(name)) {
				data[i+map[int]int{30: 6, 46: 8}[at]] |= 1
			}
		}
	}
	return data
}

// The files of an archive that cannot be read are named, and the others are read.
func TestPartsNamesWhatItLeavesOut(t *testing.T) {
	data := zipOf(t, zipEntry{"good.txt", "good"}, zipEntry{"d/bad.txt", "damaged words"},
		zipEntry{"secret.txt", "secret"}, zipEntry{"a.png", "\x89PNG\r\n\x1a\n"},
		zipEntry{"cut.docx", string(docxOf(t, paragraphs("x"))[:200])},
		zipEntry{"old.doc", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + strings.Repeat("\x00", 600)},
		zipEntry{"long.docx", string(docxOf(t, strings.Repeat("<w:tbl><w:tr><w:tc>", 3000)))},
		zipEntry{"in.zip", string(damageZip(t, zipOf(t, zipEntry{"x.txt", "damaged words"}, zipEntry{"y.txt", "inner"}),
			"x.txt"))},
		zipEntry{"half.docx", string(damageZip(t, docxOf(t, paragraphs("readable"), "footnotes.xml",
			strings.Repeat("<w:footnote/>", 100)), "word/footnotes.xml"))},
		zipEntry{"deep.zip", string(zipOf(t, zipEntry{"a.zip",
			string(zipOf(t, zipEntry{"b.zip", string(zipOf(t,
				zipEntry{"c.zip", string(zipOf(t, zipEntry{"d.txt", "d"}))}))}))}))},
		zipEntry{"x.skip", "x"}, zipEntry{"last.txt", "last"})
	data = encryptZip(t, damageZip(t, data, "d/bad.txt"), "secret.txt")
	got := map[string]string{}
	err := Parts(t.Context(), Input{Name: "a.zip", Data: data},
		func(name string) bool { return !strings.HasSuffix(name, ".skip") }, func(p Part) error {
			switch {
			case p.Err != nil:
				got[p.Name] = "error: " + errkind.Message(p.Err)
			case p.Damaged:
				got[p.Name] = p.Body + " (damaged)"
			default:
				got[p.Name] = p.Body
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"good.txt": "good", "last.txt": "last", "in.zip/y.txt": "inner", "half.docx": "readable (damaged)",
		"d/bad.txt":                        "error: damaged file in an archive: save or download it again",
		"in.zip/x.txt":                     "error: damaged file in an archive: save or download it again",
		"secret.txt":                       "error: file in an archive with a password: save a copy without it",
		"a.png":                            "error: image",
		"cut.docx":                         "error: damaged Word document: save or download it again",
		"old.doc":                          "error: office document in an old format: save it in a current one",
		"long.docx":                        "error: Word document: its parts are nested more than 2000 levels deep",
		"deep.zip/a.zip/b.zip/c.zip/d.txt": "error: more than 4 files are packed one inside the other: unpack it",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// What is missing of a damaged file is reported with the text that is left.
func TestDamaged(t *testing.T) {
	long := gzipOf(t, bytes.Repeat([]byte("one two\n"), 1000))
	mbox := "From a@b Mon Jan  1 00:00:00 2024\nFrom: a\nSubject: s\n\n" + strings.Repeat("Hello, hello.\n", 100)
	for _, tt := range []struct {
		name string
		data []byte
		want bool
	}{
		{"a.txt.gz", long, false},
		{"a.txt.gz", long[:len(long)-4], true},
		{"a.mbox.gz", gzipOf(t, []byte(mbox)), false},
		{"a.mbox.gz", gzipOf(t, []byte(mbox))[:80], true},
		{"a.pdf", []byte(smallPDF + "%%EOF\n"), false}, // repaired, but complete
		{"a.pdf", []byte(smallPDF), true},
		{"a.rtf", []byte(`{\rtf1 words}`), false},
		{"a.ipynb", []byte(`{"cells": [{"cell_type": "markdown", "source": "words"}]}`), false},
		{"a.ipynb", []byte(`{"cells": [{"cell_type": "markdown", "source": "words"}, {"cell_`), true},
		{"a.ipynb", []byte(`{"cells": [{"cell_type": 1}], "words": 2}`), false},
		{"a.rtf", []byte(`{\rtf1 {\b words} and`), true},
		{"a.docx", docxOf(t, paragraphs("x"), "footnotes.xml", strings.Repeat("<w:footnote/>", 100)), false},
		{"a.docx", damageZip(t, docxOf(t, paragraphs("x"), "footnotes.xml", strings.Repeat("<w:footnote/>", 100)),
			"word/footnotes.xml"), true},
		{"a.xlsx", ooxml(t, "spreadsheetml.sheet", "xl/workbook.xml",
			`<workbook><sheets><sheet name="S" r:id="rId1"/></sheets></workbook>`,
			[]string{"worksheet", "worksheets/sheet1.xml"}), true},
	} {
		damaged := false
		err := Parts(t.Context(), Input{Name: tt.name, Data: tt.data}, func(string) bool { return true },
			func(p Part) error {
				damaged = damaged || p.Err != nil || p.Text != nil && p.Damaged
				return nil
			})
		if err != nil || damaged != tt.want {
			t.Errorf("Parts(%s of %d bytes): damaged %v, error %v, want %v", tt.name, len(tt.data), damaged, err,
				tt.want)
		}
	}
}

// Archives that unpack to too much are refused, whatever contains the data.
func TestPartsThatUnpackToTooMuch(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a second")
	}
	big := gzipOf(t, make([]byte, maxUnpacked+1))
	half := string(bytes.Repeat([]byte("0123456789abcde\n"), maxUnpacked/32+1))
	for name, data := range map[string][]byte{"a.gz": big,
		"a.zip": zipOf(t, zipEntry{"a.txt", half}, zipEntry{"b.txt", half})} {
		if _, err := partsOf(t.Context(), Input{Name: name, Data: data}); !errors.Is(err, errkind.TooLarge) ||
			!strings.Contains(errkind.Message(err), "unpacks to more than") {
			t.Errorf("Parts(%s) = %v, want kind TooLarge", name, err)
		}
	}
}

// A mailbox is one text for callers that want one document.
func TestExtractMailbox(t *testing.T) {
	x := mustExtract(t, Input{Name: "a.mbox", Data: []byte("From a@b Mon Jan  1 00:00:00 2024\nSubject: One\n\n1\n\nFrom a@b Mon Jan  1 00:00:00 2024\n\n2\n")})
	if want := "One\n\n1\n\nMessage 2\n\n2"; x.Body != want || x.Title != "One" || len(x.Headings) != 2 {
		t.Errorf("Extract = %q with the title %q and %d headings, want %q", x.Body, x.Title, len(x.Headings), want)
	}
	_, err := Extract(t.Context(), Input{Name: "a.txt.gz", Single: true, Data: gzipOf(t, []byte("a"))})
	if !errors.Is(err, errkind.Unsupported) {
		t.Errorf("Extract of a gzip file alone = %v, want kind Unsupported", err)
	}
	attached := Input{Name: "a.eml", Single: true,
		Data: []byte("Content-Type: multipart/mixed; boundary=x\n\n--x\n\nText\n--x\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nsecret\n--x--\n")}
	if x := mustExtract(t, attached); x.Body != "Text\n\nAttachment: a.txt" {
		t.Errorf("Extract of a mail alone = %q, want its attachment only named", x.Body)
	}
	_, err = Extract(t.Context(), Input{Name: "a.zip", Data: zipOf(t, zipEntry{"a.txt", "a"})})
	if !errors.Is(err, errkind.Unsupported) {
		t.Errorf("Extract of an archive = %v, want kind Unsupported", err)
	}
}

func TestPartsStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, in := range []Input{
		{Name: "a.zip", Data: zipOf(t, zipEntry{"a.txt", "a"}, zipEntry{"b.txt", "b"})},
		{Name: "a.gz", Data: gzipOf(t, []byte("a"))},
		{Name: "a.mbox", Data: []byte("From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\nx")},
	} {
		if _, err := partsOf(ctx, in); !errors.Is(err, context.Canceled) {
			t.Errorf("Parts(%s) = %v, want context.Canceled", in.Name, err)
		}
	}
}

// The text of JSON with many brackets must not be much longer than its source.
func TestIndentedJSONIsBounded(t *testing.T) {
	src := strings.Repeat("[", 1<<20)
	if x := mustExtract(t, Input{Name: "a.json", Data: []byte(src)}); len(x.Body) > 6*len(src) {
		t.Errorf("the text has %d bytes, %d times those of its source", len(x.Body), len(x.Body)/len(src))
	}
}

// Hostile files must be read in time that grows with their length alone.
func TestHostileFormats(t *testing.T) {
	if testing.Short() {
		t.Skip("hostile input takes minutes under the race detector")
	}
	const n = 100_000
	rep := func(s string) string { return strings.Repeat(s, n) }
	mail := "Content-Type: multipart/mixed; boundary=x\n\n"
	for name, text := range map[string]string{
		"boundaries.eml":    mail + rep("--x\n"),
		"long boundary.eml": mail + rep("--xx"),
		"headers.eml":       rep("X-A: b\n") + "\nbody",
		"folded.eml":        "A: b\n" + rep(" c\n"),
		"nested.eml":        strings.Repeat(mail+"--x\n", 2000),
		"from.mbox":         "From a@b 2024\nA: b\n" + rep("\nFrom a@b\n"),
		"messages.mbox":     strings.Repeat("From a@b Mon 2024\nA: b\n\n", 15000),
		"brackets.json":     rep("["),
		"keys.json":         rep(`{"a":`),
		"strings.json":      rep(`"\u00e9`),
		"one line.json":     `{"a":"` + rep(`\ud83d`) + `"}`,
		"blanks.json":       "[" + rep("   ") + "[",
		"keys.yaml":         rep("- - - a:\n"),
		"deep.yaml":         strings.Repeat("a:\n", 10) + rep("  b:\n"),
		"tables.toml":       rep("[a]\n"),
		"quotes.toml":       rep("\"\"\"\n"),
		"stars.rst":         rep("*a "),
		"quotes.rst":        rep("`a <"),
		"adorned.rst":       rep("a\n=\n"),
		"directives.rst":    rep(".. a::\n\n"),
		"indented.rst":      rep(".. a::\n   "),
		"names.rst":         rep("a_b_"),
		"stars.adoc":        rep("*a _b `c "),
		"blocks.adoc":       rep("----\n"),
		"brackets.adoc":     rep("link:["),
		"cells.adoc":        "|===\n" + rep("|a"),
		"headings.org":      rep("* a :b:\n"),
		"stars.org":         rep("*/a "),
		"drawer.org":        ":A:\n" + rep("a\n"),
		"braces.tex":        rep("{"),
		"commands.tex":      rep(`\a{`),
		"sections.tex":      rep(`\section{`),
		"optional.tex":      rep(`\a[`),
		"math.tex":          rep("$"),
		"verbatim.tex":      rep(`\begin{verbatim}`),
		"equations.tex":     rep(`\begin{align}`),
		"accents.tex":       rep(`\'`),
		"macros.1":          ".TH A 1\n" + rep(".B a\n"),
		"escapes.1":         ".TH A 1\n" + rep(`\f[`),
		"quotes.1":          ".TH A 1\n.B " + strings.Repeat(`"a" `, 8000),
		"conditions.1":      ".TH A 1\n" + rep(".if n .if n .B a\n"),
		"one condition.1":   ".TH A 1\n.if n " + strings.Repeat(`\{.if n `, 4000),
		"enclosures.8":      ".Dd a\n" + rep(".Op Op Op Dq a\n"),
		"timings.srt":       rep("00:00:01,000 --> 00:00:02,000\n"),
		"tags.vtt":          "WEBVTT\n\n" + rep("<v <c> "),
		"elements.svg":      "<svg>" + rep("<text>a"),
		"skipped.svg":       "<svg>" + rep("<metadata>"),
		"code.go":           rep("func a() {\n"),
		"code.cpp":          rep("a b(") + "\n" + rep("a::b::"),
		"code.ts":           rep("  a(b): c {\n"),
		"code.py":           rep(`"""`) + rep("\ndef a("),
		"code.java":         rep("  public static a "),
		"code.sql":          rep("create a b c "),
		"cells.ipynb":       `{"cells":[` + strings.TrimSuffix(rep(`{"cell_type":"code","source":"a"},`), ",") + `]}`,
		"nested.ipynb":      `{"cells":[{"cell_type":` + strings.Repeat("[", 9000),
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Name: name, Data: []byte(text)}
			if _, err := partsOf(t.Context(), in); err != nil && !errors.Is(err, errkind.TooLarge) &&
				!errors.Is(err, errkind.Unsupported) {
				t.Error(err)
			}
		})
	}
}

func FuzzParts(f *testing.F) {
	files, err := filepath.Glob("testdata/formats/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, ".golden") {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(filepath.Base(file), data)
		f.Add(filepath.Base(file), data[:len(data)/2])
		f.Add(filepath.Base(file)+".gz", gzipOf(f, data))
		f.Add("a.zip", zipOf(f, zipEntry{filepath.Base(file), string(data)}))
	}
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		err := Parts(t.Context(), Input{Name: name, Data: data}, func(string) bool { return true }, func(p Part) error {
			if p.Err != nil {
				if !errors.Is(p.Err, errkind.Unsupported) && !errors.Is(p.Err, errkind.Corrupt) &&
					!errors.Is(p.Err, errkind.TooLarge) || p.Text != nil || !filepath.IsLocal(p.Name) && p.Name != "" {
					t.Errorf("%s: part %q with the error %v, want one of the documented kinds, and no text", name,
						p.Name, p.Err)
				}
				return nil
			}
			if !utf8.ValidString(p.Body) || !utf8.ValidString(p.Title) ||
				strings.ContainsFunc(p.Body, plain.IsControl) ||
				strings.ContainsFunc(p.Title, func(r rune) bool { return plain.IsControl(r) || r == '\n' }) {
				t.Errorf("%s: text %q with the title %q has control characters or is not UTF-8", name, p.Body, p.Title)
			}
			if p.Name != "" && !filepath.IsLocal(p.Name) {
				t.Errorf("%s: name %q leads out", name, p.Name)
			}
			for _, h := range p.Headings {
				if h.Offset < 0 || h.Offset >= len(p.Body) || h.Text == "" && h.Level < document.TermLevel ||
					!utf8.ValidString(h.Text) || h.Level < 1 || h.Level > document.NestedTermLevel ||
					!utf8.RuneStart(p.Body[h.Offset]) {
					t.Errorf("%s: heading %+v in a text of %d bytes", name, h, len(p.Body))
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errkind.Unsupported) && !errors.Is(err, errkind.Corrupt) &&
			!errors.Is(err, errkind.TooLarge) {
			t.Errorf("Parts(%s) = %v, want one of the documented kinds", name, err)
		}
	})
}

// The files in an attached archive are read like other attached files.
func TestMailWithArchive(t *testing.T) {
	archive := base64.StdEncoding.EncodeToString(zipOf(t, zipEntry{"a.md", "# Apples\n\ngreen"},
		zipEntry{"b.png", "\x89PNG\r\n\x1a\n"}, zipEntry{"../c.txt", "cherries"}))
	mail := "Subject: S\nContent-Type: multipart/mixed; boundary=x\n\n--x\n\nText\n--x\nContent-Type: application/zip; name=all.zip\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment\n\n" + archive + "\n--x--\n"
	x := mustExtract(t, Input{Name: "a.eml", Data: []byte(mail)})
	if want := "Text\n\nall.zip\n\na.md\n\n# Apples\n\ngreen\n\nc.txt\n\ncherries"; x.Body != want ||
		len(x.Headings) != 4 {
		t.Errorf("Extract = %q with %d headings, want %q", x.Body, len(x.Headings), want)
	}
	x = mustExtract(t, Input{Name: "a.eml", Single: true, Data: []byte(mail)})
	if want := "Text\n\nAttachment: all.zip"; x.Body != want {
		t.Errorf("Extract of a mail alone = %q, want %q", x.Body, want)
	}
}

// nestedMail returns a mail with a text in multiparts one inside the other.
func nestedMail(depth int, text string) []byte {
	var b strings.Builder
	b.WriteString("Subject: S\n")
	for i := range depth {
		fmt.Fprintf(&b, "Content-Type: multipart/mixed; boundary=\"b%d\"\n\n--b%d\n", i, i)
	}
	b.WriteString("Content-Type: text/plain\n\n" + text + "\n")
	for i := depth - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "--b%d--\n", i)
	}
	return []byte(b.String())
}

// The text of a mail is read, or the mail is reported as read in part.
func TestNestedMultiparts(t *testing.T) {
	for _, tt := range []struct {
		name    string
		data    []byte
		want    string
		damaged bool
	}{
		{"20 multiparts", nestedMail(20, "needle"), "needle", false},
		{"1000 multiparts", nestedMail(1000, "needle"), "", true},
		{"600 parts", []byte("Content-Type: multipart/mixed; boundary=b\n\n" + strings.Repeat("--b\n\ntext\n", 600) +
			"--b--\n"), strings.TrimSpace(strings.Repeat("text\n\n", 500-1)), true},
		{"mails inside mails", []byte(strings.Repeat("Content-Type: message/rfc822\n\n", 6) + "\nneedle\n"),
			"Attachment\n\nAttachment\n\nAttachment\n\nAttachment", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := mustExtract(t, Input{Name: "a.eml", Data: tt.data})
			if x.Body != tt.want || x.Damaged != tt.damaged {
				t.Errorf("body %.100q, damaged %t, want %.100q, %t", x.Body, x.Damaged, tt.want, tt.damaged)
			}
		})
	}
	mail := fmt.Sprintf("From a@b Mon Jan  1 00:00:00 2024\n%s\nFrom a@b Mon Jan  1 00:00:00 2024\nSubject: T\n\nsecond\n", nestedMail(1000, "needle"))
	var damaged []string
	err := Parts(t.Context(), Input{Name: "a.mbox", Data: []byte(mail)}, func(string) bool { return true },
		func(p Part) error {
			if p.Damaged {
				damaged = append(damaged, p.Name)
			}
			return nil
		})
	if err != nil || len(damaged) != 1 || damaged[0] != "1" {
		t.Errorf("damaged messages %v, %v, want the first one", damaged, err)
	}
}
