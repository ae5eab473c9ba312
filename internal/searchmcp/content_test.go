package searchmcp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// longText is a text with paragraphs, lines, kanji and emoji, of about n bytes.
func longText(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "Paragraph %d tells of budgets. 予算の報告 🔥\nA second line.\n\n", i)
	}
	return b.String()
}

func withText(text string) *fakeBackend {
	return &fakeBackend{docs: []fakeDoc{{id: "d1", label: "finance_docs", title: "Long", text: text}}}
}

// readAt reads the piece at a cursor.
func readAt(b *Tools, id, at string) (*Piece, error) {
	from, err := b.textPlace(id, at)
	if err != nil {
		return nil, err
	}
	return b.readPart(context.Background(), part{id: id, from: from}, noReport)
}

// walk reads a text to its end and returns the pieces.
func walk(t *testing.T, b *Tools, id string) []*Piece {
	t.Helper()
	var pieces []*Piece
	for at := ""; ; {
		p, err := readAt(b, id, at)
		if err != nil {
			t.Fatalf("readPart(%s, %q) after %d pieces: %v", id, at, len(pieces), err)
		}
		pieces = append(pieces, p)
		if p.IsLast != (p.NextCursor == "") {
			t.Fatalf("piece %d: isLast %v with nextCursor %q", len(pieces), p.IsLast, p.NextCursor)
		}
		if p.IsLast {
			return pieces
		}
		if at = p.NextCursor; len(pieces) > 100_000 {
			t.Fatal("the text never ends")
		}
	}
}

// TestContentChunks is AT-RES-004: no chunk is duplicated or left out.
func TestContentChunks(t *testing.T) {
	for _, tt := range []struct {
		name string
		text string
		max  int
		want int // pieces; 0 means more than one
	}{
		{"long", longText(50_000), 1024, 0},
		{"no place to cut", strings.Repeat("x", 5000), 1024, 5},
		{"other line ends", strings.ReplaceAll(longText(20_000), "\n", "\r\n"), 1024, 0},
		{"line end at the border", strings.Repeat("x", 1023) + "\r\nend", 1024, 2},
		{"four-byte characters", strings.Repeat("🔥", 3000), 1025, 0},
		{"fits exactly", strings.Repeat("y", 1024), 1024, 1},
		{"one byte too many", strings.Repeat("y", 1025), 1024, 2},
		{"ends with a paragraph at the border", strings.Repeat("y", 1022) + "\n\n" + "z", 1024, 2},
		{"short", "hello", 1024, 1},
		{"empty", "", 1024, 1},
		{"default size", longText(300_000), 0, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := New(Options{Domain: finance, Backend: withText(tt.text), MaxChunkBytes: tt.max})
			pieces := walk(t, b, "d1")
			var all strings.Builder
			for i, p := range pieces {
				all.WriteString(p.Text)
				if len(p.Text) > b.maxChunkBytes || !utf8.ValidString(p.Text) {
					t.Errorf("piece %d has %d bytes (valid UTF-8: %v), want at most %d", i, len(p.Text),
						utf8.ValidString(p.Text), b.maxChunkBytes)
				}
				if strings.HasSuffix(p.Text, "\r") && !p.IsLast {
					t.Errorf("piece %d ends inside of a line end", i)
				}
				if p.Hash != textHash(tt.text) || p.DocID != "d1" || p.URL == "" {
					t.Errorf("piece %d = doc_id %q, url %q, hash %q", i, p.DocID, p.URL, p.Hash)
				}
			}
			if all.String() != tt.text {
				t.Errorf("%d pieces give %d bytes, want the text of %d bytes", len(pieces), all.Len(), len(tt.text))
			}
			if tt.want > 0 && len(pieces) != tt.want || tt.want == 0 && len(pieces) < 2 {
				t.Errorf("got %d pieces, want %d (0: several)", len(pieces), tt.want)
			}
		})
	}
}

func TestContentPrefersParagraphs(t *testing.T) {
	b := New(Options{Domain: finance, Backend: withText(longText(20_000)), MaxChunkBytes: 1024})
	pieces := walk(t, b, "d1")
	for i, p := range pieces[:len(pieces)-1] {
		if !strings.HasSuffix(p.Text, "\n\n") {
			t.Errorf("piece %d ends with %q, want the end of a paragraph", i, p.Text[len(p.Text)-20:])
		}
	}
}

// Invisible characters are removed from the text, and nothing else.
func TestContentIsVisible(t *testing.T) {
	for text, want := range map[string]string{
		"a\x00b\u202ec\t<d>":                              "abc\t<d>",
		"a\U000e0041\U000e0049b\u200b\n\n\n  c  \x1b[31m": "ab\n\n\n  c  [31m",
		"می\u200cخواهم":                                   "می\u200cخواهم",
		"one\r\ntwo \r\n\r\n\r\nthree\u00a0<b>four</b>":   "one\r\ntwo \r\n\r\n\r\nthree\u00a0<b>four</b>",
	} {
		b := New(Options{Domain: finance, Backend: withText(text)})
		if got := walk(t, b, "d1")[0].Text; got != want {
			t.Errorf("text = %q, want %q", got, want)
		}
	}
}

// Chunks follow one another in the text as it is stored, whatever is removed
// from them.
func TestContentPlacesOfInvisible(t *testing.T) {
	line := strings.Repeat("\U000e0041", 50) + "visible\u202e words\n\n"
	b := New(Options{Domain: finance, Backend: withText(strings.Repeat(line, 100)), MaxChunkBytes: 1024})
	got := ""
	for _, p := range walk(t, b, "d1") {
		got += p.Text
	}
	if want := strings.Repeat("visible words\n\n", 100); got != want {
		t.Errorf("the chunks contain %q, want %q", got, want)
	}
}

// A cursor is valid for a new server over the same documents.
func TestContentCursorOutlivesServer(t *testing.T) {
	text := longText(5000)
	first, err := readAt(New(Options{Domain: finance, Backend: withText(text), MaxChunkBytes: 1024}), "d1", "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := readAt(New(Options{Domain: finance, Backend: withText(text), MaxChunkBytes: 1024}), "d1",
		first.NextCursor)
	if err != nil || !strings.HasPrefix(text, first.Text+second.Text) {
		t.Errorf("readPiece with a cursor of another server = %+v, %v, want the text's second piece", second, err)
	}
}

func TestContentErrors(t *testing.T) {
	backend := withText(longText(5000))
	backend.docs = append(backend.docs,
		fakeDoc{id: "d2", label: "finance_docs", text: longText(5000)},
		fakeDoc{id: "bare", label: "finance_docs", noText: true},
		fakeDoc{id: "x1", label: "hr", text: "secret"})
	b := New(Options{Domain: finance, Backend: backend, MaxChunkBytes: 1024})
	first, err := readAt(b, "d1", "")
	if err != nil {
		t.Fatal(err)
	}
	backend.docs[0].text = "Changed. " + backend.docs[0].text
	for _, tt := range []struct {
		name, id, cursor string
		kind             error
		contains         string
	}{
		{"changed text", "d1", first.NextCursor, errkind.Conflict,
			`document "d1" changed since the first chunk; read it again without a cursor`},
		{"cursor of another document", "d2", first.NextCursor, errkind.Invalid, `"cursor"`},
		{"garbage cursor", "d1", "garbage", errkind.Invalid, `"cursor"`},
		{"unknown document", "nope", "", errkind.NotFound, `document "nope" in domain finance; search again`},
		{"document of another label", "x1", "", errkind.NotFound, `document "x1"`},
		{"no text", "bare", "", errkind.Unsupported, "bare"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := readAt(b, tt.id, tt.cursor)
			if !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.contains) {
				t.Errorf("readPart(%s, %q) = %+v, %v, want %v with %q", tt.id, tt.cursor, p, err, tt.kind, tt.contains)
			}
		})
	}
}

// A text that became shorter than the cursor's offset has changed as well.
func TestContentShrunk(t *testing.T) {
	backend := withText(longText(5000))
	b := New(Options{Domain: finance, Backend: backend, MaxChunkBytes: 1024})
	first, err := readAt(b, "d1", "")
	if err != nil {
		t.Fatal(err)
	}
	backend.docs[0].text = "short"
	if p, err := readAt(b, "d1", first.NextCursor); !errors.Is(err, errkind.Conflict) {
		t.Errorf("readPiece of a shrunk text = %+v, %v, want kind Conflict", p, err)
	}
}

// A service that stops giving text is an error, not an endless text.
func TestContentStops(t *testing.T) {
	b := New(Options{Domain: finance, Backend: silent{withText("text")}})
	if p, err := readAt(b, "d1", ""); err == nil {
		t.Errorf("readPiece of a service without text = %+v, want an error", p)
	}
}

// silent is a backend that promises text and gives none.
type silent struct{ *fakeBackend }

func (silent) ReadText(context.Context, string, []string, int64, int) (*search.Text, error) {
	return &search.Text{DocID: "d1", Hash: "sha256:0", Size: 10}, nil
}

// A document that is missing upstream differs from an upstream without the
// address: the second is a failure to report as it is.
func TestUnknownKeepsRemote(t *testing.T) {
	backend := corpus()
	backend.err = &errkind.Remote{Kind: errkind.NotFound, Endpoint: "/api/v1/documents", Status: 404,
		Message: "no such address"}
	b := New(Options{Domain: finance, Backend: backend})
	_, err := b.find(context.Background(), "d1")
	var remote *errkind.Remote
	if !errors.As(err, &remote) || remote.Status != 404 {
		t.Errorf("find = %v, want the upstream's error", err)
	}
}
