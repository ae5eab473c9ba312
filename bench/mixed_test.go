package bench

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// BenchmarkMixed indexes the folder that bench/mixed filled, also with the program
// OLD_BIN, and measures how fast one core reads each format. It prints tables.
func BenchmarkMixed(b *testing.B) {
	dir := os.Getenv("MIXED_DOCS")
	if dir == "" {
		b.Skip("MIXED_DOCS is not set: run bench/mixed FOLDER")
	}
	source := filepath.Join(dir, "files")
	files := 0
	err := filepath.WalkDir(source, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files++
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	megabytes := float64(size(b, source)) / 1e6
	programs := [][2]string{{"this version", program(b)}}
	if old := os.Getenv("OLD_BIN"); old != "" {
		programs = slices.Insert(programs, 0, [2]string{"before", old})
	}
	for b.Loop() {
		fmt.Printf("\n| | files | documents | time | files/s | MB/s | processor time | peak memory | left out |\n|---|---|---|---|---|---|---|---|---|\n")
		for _, p := range programs {
			x, leftOut := indexMixed(b, p[1], source)
			s := x.took.Seconds()
			fmt.Printf("| %s | %d | %d | %.1f s | %.0f | %.1f | %.1f s | %.0f MB | %s |\n", p[0], files, x.documents, s, float64(files)/s, megabytes/s, x.cpu.Seconds(), x.peak, leftOut)
		}
		readFormats(b, source)
	}
	b.ReportMetric(0, "ns/op")
}

// indexMixed indexes a folder with a program and returns what it left out.
func indexMixed(b *testing.B, program, source string) (x indexing, leftOut string) {
	b.Helper()
	b.Setenv("KNOWHOW_EMBEDDER", "none")
	began := time.Now()
	p := startProgram(b, program, "serve", "--transport", "stdio", "--no-watch", "--data", filepath.Join(b.TempDir(), "data"), "--label", "mixed", source)
	done := p.await(`^mixed: (\d+) documents?`)
	x.took = time.Since(began)
	x.peak = p.memory("VmHWM")
	leftOut = p.await(`^mixed: left out: (.*)`)[1]
	if err := p.stop(); !ended(err) {
		b.Fatal(err)
	}
	x.cpu = p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()
	if _, err := fmt.Sscan(done[1], &x.documents); err != nil {
		b.Fatal(err)
	}
	return x, leftOut
}

// mixedFormats are the formats by extension. Manual pages have the numbers of
// sections.
var mixedFormats = func() map[string]string {
	m := map[string]string{}
	for format, extensions := range map[string]string{
		"HTML": ".html .htm", "plain text": ".txt", "Markdown": ".md", "PDF": ".pdf", "reStructuredText": ".rst", "AsciiDoc": ".adoc", "Org": ".org",
		"LaTeX": ".tex", "manual pages": ".1 .2 .3 .5 .7 .8 .man", "gzip": ".gz", "JSON, YAML, TOML, INI": ".json .yaml .yml .toml .ini .cfg",
		"source code": ".go .py .c .h .cpp .js .ts .rs .java .cs .rb .php .sh .sql", "CSV": ".csv", "SVG": ".svg", "subtitles": ".srt .vtt",
		"mail": ".eml .mbox", "notebooks": ".ipynb", "Word": ".docx", "PowerPoint": ".pptx", "Excel": ".xlsx", "OpenDocument": ".odt .ods .odp",
		"RTF": ".rtf", "EPUB": ".epub", "ZIP": ".zip",
	} {
		for ext := range strings.FieldsSeq(extensions) {
			m[ext] = format
		}
	}
	return m
}()

// A formatSpeed is how fast files of a format are read.
type formatSpeed struct {
	files, parts, failed int
	bytes, text          int64
	took                 time.Duration
}

// readFormats reads each file on one core and prints the speed of each format.
func readFormats(b *testing.B, source string) {
	b.Helper()
	speeds := map[string]*formatSpeed{}
	err := filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		format := mixedFormats[strings.ToLower(filepath.Ext(path))]
		if err != nil || !d.Type().IsRegular() || format == "" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s := speeds[format]
		if s == nil {
			s = &formatSpeed{}
			speeds[format] = s
		}
		s.files++
		s.bytes += int64(len(data))
		began := time.Now()
		err = extract.Parts(context.Background(), extract.Input{Name: path, Data: data}, func(string) bool { return true }, func(p extract.Part) error {
			if p.Err == nil {
				s.parts++
				s.text += int64(len(p.Body))
			}
			return nil
		})
		s.took += time.Since(began)
		if err != nil {
			s.failed++
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	fmt.Printf("\n| format | files | not read | documents | MB | text, MB | MB/s on one core |\n|---|---|---|---|---|---|---|\n")
	for _, format := range slices.SortedFunc(maps.Keys(speeds), func(x, y string) int { return -cmp.Compare(speeds[x].bytes, speeds[y].bytes) }) {
		s := speeds[format]
		fmt.Printf("| %s | %d | %d | %d | %.2f | %.2f | %.1f |\n", format, s.files, s.failed, s.parts, float64(s.bytes)/1e6, float64(s.text)/1e6, float64(s.bytes)/1e6/s.took.Seconds())
	}
	fmt.Println()
}
