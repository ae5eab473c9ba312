package index_test

import (
	"slices"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A word that a query excludes never comes back, and an option is found as it is
// written.
func TestExcludedWords(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "red.md", "Lakes", "A red lake."),
		doc("a", "java.md", "Heap", "Run java -Xmx for it."),
		doc("a", "other.md", "Other", "What java has is xmx."),
		doc("a", "green.md", "Pond", "A green pond."))
	for _, tt := range []struct {
		typed   string
		want    []string
		relaxed bool
	}{
		{"lake -red", nil, false},
		{"lake NOT red", nil, false},
		{"lake -red OR", nil, true},
		{`lake "-red`, nil, true},
		{"pond -red", []string{"green.md"}, false},
		{"java -Xmx", []string{"java.md"}, true},
		{"java -Xmx (", []string{"java.md"}, true},
		{"java NOT -Xmx", nil, true},
		{"Run java NOT -Xmx", nil, true},
		{"Run java !Xmx (", nil, true},
	} {
		r, err := query.Read(tt.typed)
		if err != nil {
			t.Fatalf("Read(%q) = %v", tt.typed, err)
		}
		p, err := search.Relax(t.Context(), x, search.Query{Text: r, Num: 10})
		if err != nil {
			t.Fatalf("Search(%q) = %v", tt.typed, err)
		}
		var got []string
		for _, h := range p.Hits {
			got = append(got, h.Path)
		}
		if !slices.Equal(got, tt.want) || (p.Relaxed || r.Relaxed()) != tt.relaxed {
			t.Errorf("hits for %q = %q, relaxed %v, want %q, %v", tt.typed, got, p.Relaxed, tt.want, tt.relaxed)
		}
	}
}

// Questions in scripts without blanks find the documents with their words, and
// those where the words stand together first.
func TestQuestionsWithoutBlanks(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x,
		doc("a", "apart.md", "規程", "国内の場合はこちら。\n\n海外出張については別に定める。旅費の計算は経理が行う。日当も同じである。"),
		doc("a", "trip.md", "旅費", "海外出張の日当は一日五千円です。"),
		doc("a", "meeting.md", "案内", "明日の会議は三階の会議室で行う。"),
		doc("a", "kyoto.md", "京都", "京都の天気。東京の話。"),
		doc("a", "tokyo.md", "東京都", "東京都の条例。"),
		doc("a", "order.md", "申込", "申し込みは窓口で。方法は二つある。"),
		doc("a", "zh.md", "员工手册", "员工每年有十五天年假。"),
		doc("a", "ko.md", "안내", "연차를 신청하는 방법."),
		doc("a", "th.md", "คู่มือ", "พนักงานลาพักร้อนได้สิบวัน"),
		doc("a", "en.md", "Notes", "Nothing of interest."))
	for _, tt := range []struct {
		typed string
		want  []string // the first ones
		all   bool     // there are no others
	}{
		{"海外出張の日当", []string{"trip.md", "apart.md"}, true},
		{"日当はいくらですか", []string{"trip.md", "apart.md"}, true},
		{"日当はいくらですか？", []string{"trip.md", "apart.md"}, true},
		{"会議はどこ", []string{"meeting.md"}, true},
		{"会議はどこ?", []string{"meeting.md"}, true},
		{"東京都", []string{"tokyo.md"}, true},
		{"申し込みの方法", []string{"order.md"}, false},
		{"年假有几天", []string{"zh.md"}, false},
		{"年假有几天？", []string{"zh.md"}, false},
		{"연차는 며칠인가요?", []string{"ko.md"}, true},
		{"연차는 어떻게 신청하나요", []string{"ko.md"}, true},
		{"ลาพักร้อนกี่วัน", []string{"th.md"}, false},
	} {
		got := pathsOf(t, x, tt.typed)
		if len(got) < len(tt.want) || tt.all && len(got) > len(tt.want) {
			t.Errorf("hits for %q = %q, want %q", tt.typed, got, tt.want)
			continue
		}
		first := slices.Clone(got[:len(tt.want)])
		if tt.typed[:3] == "日" {
			slices.Sort(first)
			slices.Reverse(first)
		}
		if !slices.Equal(first, tt.want) {
			t.Errorf("hits for %q = %q, want %q first", tt.typed, got, tt.want)
		}
	}
	p, err := x.Search(t.Context(), search.Query{Text: query.MustParse("海外出張の日当"), Num: 10})
	if err != nil || !p.Staged || p.AllWords != 2 {
		t.Errorf("Search() = %+v, %v, want 2 documents with all words", p, err)
	}
}

// The usual ending of a format finds the documents of the format.
func TestFileTypes(t *testing.T) {
	x := open(t, t.TempDir())
	table := doc("a", "table.xlsx", "Table", "Some numbers.")
	table.FileType = "excel"
	put(t, x, table, doc("a", "text.txt", "Text", "Some numbers."))
	for _, text := range []string{"filetype:excel", "filetype:xlsx", "filetype:xls", "numbers filetype:xlsx"} {
		if got := find(t, x, search.Query{Text: query.MustParse(text)}); !slices.Equal(got, []string{"table.xlsx"}) {
			t.Errorf("Search(%q) = %q, want table.xlsx", text, got)
		}
	}
}

// A word with signs that no document has is searched for by the words between its
// signs, and a search says which words of a question no document has.
func TestNeverEmpty(t *testing.T) {
	x := open(t, t.TempDir())
	put(t, x, doc("a", "timer.md", "Timers", "A timer may run from Mon to Fri."),
		doc("a", "limits.md", "Limits", "The file is below proc and sys."))
	for _, tt := range []struct {
		typed   string
		want    string
		relaxed bool
		missing []string
	}{
		{"OnCalendar=Mon..Fri 09:00", "timer.md", true, []string{"OnCalendar", "09", "00"}},
		{"/proc/sys/net/ipv4/icmp_rate", "limits.md", true, []string{"net", "ipv4", "icmp_rate"}},
		{"SessionName=Mon path=/;httponly zebra", "timer.md", true, []string{"SessionName", "path", "httponly", "zebra"}},
		{"the timer of the zebra and the walrus", "timer.md", false, []string{"zebra", "walrus"}},
		{"may a timer run from Mon to Fri zebra", "timer.md", false, nil}, // few are missing
	} {
		text, err := query.Read(tt.typed)
		if err != nil {
			t.Fatal(err)
		}
		p, err := search.Relax(t.Context(), x, search.Query{Text: text, Num: 10})
		if err != nil || len(p.Hits) == 0 || p.Hits[0].Path != tt.want || p.Relaxed != tt.relaxed ||
			!slices.Equal(p.Missing, tt.missing) {
			t.Errorf("Relax(%q) = %+v, %v, want %s, relaxed %v, without %q", tt.typed, p, err, tt.want, tt.relaxed,
				tt.missing)
		}
	}
}
