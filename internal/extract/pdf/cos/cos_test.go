package cos

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func deflate(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	if _, err := w.Write([]byte(s)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFilters(t *testing.T) {
	const hello = "BT (Hello, world) Tj ET"
	packed := deflate(t, hello)
	tests := []struct{ filter, parms, data, want string }{
		{"/FlateDecode", "null", packed, hello},
		{"/FlateDecode", "null", "\n" + packed, hello},
		{"/FlateDecode", "null", packed[:len(packed)-4], hello},
		{"/FlateDecode", "[null]", packed, hello},
		{"/LZWDecode", "null", "\x80\x0b\x60\x50\x22\x0c\x0c\x85\x01", "-----A---B"}, // ISO 32000-1, 7.4.4.2
		{"/ASCIIHexDecode", "null", "48 65 6C6c 6F 7 > junk", "Hello\x70"},
		{"/ASCII85Decode", "null", "<~87cURD]i,\"Ebo80~>", "Hello World!"},
		{"/ASCII85Decode", "null", "z87c\nUR~>", "\x00\x00\x00\x00Hell"},
		{"/RunLengthDecode", "null", "\x04Hello\xfe!\x80junk", "Hello!!!"},
		{"[/AHx /RL]", "null", "04 48656c6c6f fe 21 80>", "Hello!!!"},
		{"/FlateDecode", "<</Predictor 12/Columns 3>>", deflate(t, "\x00abc\x02\x01\x01\x01\x01d\x01\x01"),
			"abcbcddef"},
		{"/FlateDecode", "<</Predictor 15/Columns 2>>", deflate(t, "\x00ab\x03\x00\x01\x04\x01\x02"), "ab0J1L"},
		{"/FlateDecode", "<</Predictor 2/Columns 3>>", deflate(t, "a\x01\x01b\x01\x01"), "abcbcd"},
		{"/Crypt", "<</Name/Identity>>", hello, hello},
		{"null", "null", hello, hello},
		{"/DCTDecode", "null", "\xff\xd8", ""},
		{"/FlateDecode", "null", "", ""},
	}
	for _, tt := range tests {
		f := &File{Budget: NewBudget(1<<30, 1<<30, nil)}
		l := NewLexer(fmt.Appendf(nil, "<</Filter %s/DecodeParms %s>>", tt.filter, tt.parms), 0, f.Budget)
		o, _ := l.object(true, 0)
		got, err := f.Decode(&Stream{Dict: o.(Dict), raw: []byte(tt.data)})
		if string(got) != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s %s: Decode(%q) = %q, %v, want %q", tt.filter, tt.parms, tt.data, got, err, tt.want)
		}
	}
}

func TestObjects(t *testing.T) {
	tests := []struct {
		in   string
		want Object
	}{
		{"12", 12}, {"-7.50", -7.5}, {"+.5", 0.5}, {"--3", -3}, {"4.", 4.0}, {"12-34", 12},
		{"true", true}, {"null", nil}, {"/A#20B#", Name("A B#")}, {"/", Name("")},
		{"(a(b)\\)\\n\\053\\\nc)", "a(b))\n+c"}, {"(open", "open"}, {"<4a4B5>", "JKP"},
		{"[1 2 R 3 0 R(x)]", Array{Ref{1, 2}, Ref{3, 0}, "x"}},
		{"<</A 1/B[/C]/A 2>>", Dict{"A": 1, "B": Array{Name("C")}}},
		{"<</A/B /C endobj", Dict{"A": Name("B")}},
		{"<</A % comment\n 5 0 R/D >>", Dict{"A": Ref{5, 0}}},
		{"[1 [2] 3", Array{1, Array{2}, 3}},
	}
	for _, tt := range tests {
		l := NewLexer([]byte(tt.in), 0, NewBudget(1<<20, 1<<20, nil))
		got, ok := l.object(true, 0)
		if diff := cmp.Diff(tt.want, got, cmp.AllowUnexported(Ref{})); diff != "" || !ok {
			t.Errorf("object(%q), ok %t (-want +got):\n%s", tt.in, ok, diff)
		}
	}
}

// TestObjectsInOnePlace shows that work stops when the budget is used up: a
// megabyte that many objects claim is not read once for each of them.
func TestObjectsInOnePlace(t *testing.T) {
	big := "1 0 obj [" + strings.Repeat("1 ", 1<<19) + "] endobj\n"
	data := []byte("%PDF-1.7\n" + big)
	b := NewBudget(20<<20, 1<<30, nil)
	f, err := Open(data, b)
	if err != nil {
		t.Fatal(err)
	}
	reads := 0
	for num := 2; num < 100000 && b.Err() == nil; num++ {
		f.entries.set(num, atOffset(9))
		f.load(num)
		reads++
	}
	if reads > 20 || b.Err() == nil {
		t.Errorf("%d reads of a megabyte, error %v, want the budget of 20 million steps to stop them", reads, b.Err())
	}
}

func FuzzOpen(f *testing.F) {
	f.Add([]byte("%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Length 3>>stream\nabc\nendstream endobj xref\n0 1\n0 65535 f \ntrailer<</Root 1 0 R>>startxref 0"))
	f.Add([]byte("1 0 obj<</Type/ObjStm/N 1/First 4/Length 9/Filter/AHx>>stream\n33203020(a)\nendstream endobj trailer<</Encrypt<</Filter/Standard/V 4/R 4/O()/U()/CF<</S<</CFM/AESV2>>>>/StmF/S>>>>"))
	f.Fuzz(func(t *testing.T, data []byte) {
		const steps, memory = 1 << 22, 8 << 20
		b := NewBudget(steps, memory, nil)
		defer func() {
			if b.Memory() > memory {
				t.Fatalf("%d bytes are left of %d", b.Memory(), memory)
			}
		}()
		file, err := Open(data, b)
		if err != nil {
			return
		}
		for num := range file.entries.objects() {
			if s := file.Stream(Ref{num: num}); s != nil {
				out, err := file.Decode(s)
				if err != nil && len(out) > 0 || len(out) > memory {
					t.Fatalf("a stream of %d bytes, error %v", len(out), err)
				}
				b.Free(len(out))
			}
		}
	})
}
