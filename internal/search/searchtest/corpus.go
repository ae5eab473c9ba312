package searchtest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
)

// A row is a document of the corpus as it is written down here.
type row struct {
	label, path, title, text string
}

// rows are the documents that the cases ask for by name. Words that a case
// searches for must not lie within two letters of another word: see
// TestWordsLieApart.
var rows = [...]row{
	{"finance", "budget-2024.md", "Quarterly budget",
		"The quarterly budget covers travel and hardware.\n\nA walrus signs it."},
	{"finance", "budget-2025.md", "Yearly plan", "Our budget for travel is small this time."},
	{"finance", "reversed.txt", "Reversed phrase", "This budget quarterly appears the other way round."},
	{"finance", "audit.html", "Audit of the budget", "An audit checks every invoice twice."},
	{"finance", "invoice.pdf", "How to send an invoice", "Send the invoice to the walrus before Friday."},
	{"finance", "yosan.txt", "来年度の予算", "来年度の予算は三月に東京都で決まります。"},

	{"hr", "handbook.md", "Employee handbook", "Vacation rules and the zeppelin policy live here."},
	{"hr", "travel.html", "Business trips", "Trips need a budget and a travel permit.\n\nAsk the zeppelin crew."},
	{"hr", "vacation.docx", "Vacation request", "Fill in the vacation form."},
	{"hr", "kyuka.html", "休暇の規則", "休暇は京都の事務所に申請してください。"},

	{"docs", "setup.md", "Installing the xylophone",
		"The xylophone needs infrastructure.\n\nSee the handbook for details."},
	{"docs", "network.html", "Network overview", "Our infrastructure has two switches and one budget."},
	{"docs", "camera.txt", "Camera", "The infrared camera sees heat."},
	{"docs", "kensaku.md", "全文検索の仕組み", "全文検索は索引を使います。検索結果は点数の順に並びます。"},
	{"docs", "sakuin.md", "索引について", "索引の作り方。値は自動で計算されます。"},
	{"docs", "manual.txt", "Long manual", longText()},
}

// topics contains a unique word for every filler document.
var topics = [...]string{"asparagus", "blizzard", "cathedral", "dungeon", "eucalyptus", "fjord", "gazpacho",
	"hurricane",
	"iguana", "jukebox", "knapsack", "lighthouse", "mosquito", "nightingale", "orchestra", "pyjamas", "quicksand",
	"rhubarb", "stethoscope", "tambourine", "umbrella", "volcano", "windmill", "yacht"}

// Corpus returns the documents of a service under test: 40 of them
// under the labels finance, hr and docs, in English and Japanese, no two of one
// size, file name or time. Each call returns new ones.
func Corpus() []document.Document {
	all := rows[:]
	for i, topic := range topics {
		label := [...]string{"finance", "hr", "docs"}[i%3]
		all = append(all, row{label, fmt.Sprintf("notes/%s.txt", topic), "Note on the " + topic,
			fmt.Sprintf("A filler note. It speaks of one %s%s", topic, strings.Repeat(" indeed", i+1))})
	}
	docs := make([]document.Document, len(all))
	for i, r := range all {
		docs[i] = r.document(i)
	}
	return docs
}

// kinds are the MIME type and Fess's file type by the ending of a file's name.
var kinds = map[string][2]string{
	".md":   {"text/markdown", "txt"},
	".txt":  {"text/plain", "txt"},
	".html": {"text/html", "html"},
	".pdf":  {"application/pdf", "pdf"},
	".docx": {"application/vnd.openxmlformats-officedocument.wordprocessingml.document", "word"},
}

// document makes a whole document of a row; i, its number, makes its time and
// its size unlike all others.
func (r row) document(i int) document.Document {
	sum := sha256.Sum256([]byte(r.label + "\x00" + r.path))
	hash := sha256.Sum256([]byte(r.text))
	kind := kinds[path.Ext(r.path)]
	d := document.Document{
		ID:       hex.EncodeToString(sum[:16]),
		Label:    r.label,
		Path:     r.path,
		URL:      "file:///srv/" + r.label + "/" + r.path,
		Title:    r.title,
		Lang:     "en",
		MIMEType: kind[0],
		FileType: kind[1],
		Filename: path.Base(r.path),
		// The order of times differs from that of sizes and names.
		Modified: time.Date(2024, 1, 10, 12, 0, 0, 0, time.UTC).AddDate(0, 0, i*17%41*9),
		Hash:     "sha256:" + hex.EncodeToString(hash[:]),
		Text:     r.text,
		Chunks:   chunks(r.text),
	}
	if strings.ContainsFunc(r.title, func(c rune) bool { return c >= 0x3000 }) {
		d.Lang = "ja"
	}
	if kind[1] == "html" {
		d.Host = r.label + ".example.com"
		d.URL = "https://" + d.Host + "/" + r.path
	}
	for n, tag := range []string{2: "urgent", 3: "to do", 5: "至急", 7: "Urgent"} {
		if tag != "" && i%n == 0 {
			d.Tags = append(d.Tags, tag)
		}
	}
	d.Size = int64(1000*(i%7) + 100*(i%11) + i + 500)
	d.Stamp = document.Stamp{Size: d.Size, ModTime: d.Modified}
	return d
}

// chunks cuts a text behind each empty line.
func chunks(text string) []document.Chunk {
	var all []document.Chunk
	for off := 0; off < len(text); {
		n := len(text) - off
		if i := strings.Index(text[off:], "\n\n"); i >= 0 {
			n = i + 2
		}
		all = append(all, document.Chunk{Offset: off, Length: n})
		off += n
	}
	return all
}

// longText is a text of many chunks, in several scripts, whose first and last
// words are rare.
func longText() string {
	var b strings.Builder
	b.WriteString("The alpenglow opens this manual.\n\n")
	for i := range 60 {
		fmt.Fprintf(&b, "Paragraph %d explains – in plain words – step %d. 手順は簡単です。\n\n", i+1, i+1)
	}
	b.WriteString("A barometer closes it.")
	return b.String()
}
