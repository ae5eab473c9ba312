package passage_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/passage"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// A page is a source of documents in memory.
type page struct {
	docs   []document.Document
	chunks []document.Chunk
}

func (p *page) Contents(_ context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out := make([]passage.Content, len(chunks))
	for i, c := range chunks {
		x := p.chunks[c.Number]
		text := p.docs[c.Document].Text
		from, to := min(x.Offset, len(text)), min(x.Offset+x.Length, len(text))
		if passage.IsShort(text[from:to]) {
			from, to = max(0, from-passage.Around), min(to+passage.Around, len(text))
		}
		out[i] = passage.Content{Offset: int64(x.Offset), Length: int64(x.Length), TextSize: int64(len(text)),
			Heading: x.Heading, Text: text[from:to], Start: int64(from)}
	}
	return out, nil
}

func (p *page) Locate(_ context.Context, places []passage.Place) error {
	for _, at := range places {
		d := p.docs[at.Document]
		at.Page = passage.PageAt(d.Pages, at.Offset)
		if at.Inside {
			at.Heading = passage.HeadingAt(d.Sections, at.Offset)
		}
	}
	return nil
}

// choose returns the passages of documents for some words. The score of a chunk is
// the number of the words that it has.
func choose(t *testing.T, docs []document.Document, words string, budget int) [][]search.Passage {
	t.Helper()
	p := &page{docs: docs}
	var conditions []passage.Condition
	for w := range analysis.Tokens(words, analysis.English) {
		conditions = append(conditions, passage.Condition{Terms: []string{w.Text}, Weight: 1})
	}
	var chunks []passage.Chunk
	for i, d := range docs {
		for _, c := range d.Chunks {
			found := map[string]bool{}
			for w := range analysis.Tokens(d.Text[c.Offset:c.Offset+c.Length], analysis.English) {
				found[w.Text] = slices.ContainsFunc(conditions,
					func(c passage.Condition) bool { return c.Terms[0] == w.Text })
			}
			score := 0.0
			for _, ok := range found {
				if ok {
					score++
				}
			}
			chunks = append(chunks, passage.Chunk{Number: len(p.chunks), Document: i, Score: score})
			p.chunks = append(p.chunks, c)
		}
	}
	slices.SortStableFunc(chunks, func(a, b passage.Chunk) int { return cmp.Compare(b.Score, a.Score) })
	out, err := passage.Choose(t.Context(), p, len(docs), chunks, conditions, budget)
	if err != nil || len(out) != len(docs) {
		t.Fatalf("Choose() = %d documents, %v, want %d", len(out), err, len(docs))
	}
	return out
}

// guide returns a document with a chunk for each section: a heading and filler
// sentences, and one sentence of its own.
func guide(path string, sentences ...string) document.Document {
	d := document.Document{Path: path}
	for i, s := range sentences {
		heading := fmt.Sprintf("Part %d", i+1)
		text := heading + "\n\n" + strings.Repeat("This sentence is a filler about nothing at all. ", 8) + s + " " +
			strings.Repeat("More of the same follows here without an end. ", 8) + "\n\n"
		d.Chunks = append(d.Chunks, document.Chunk{Offset: len(d.Text), Length: len(text),
			Heading: "Guide > " + heading})
		d.Text += text
	}
	return d
}

// plain returns a document of one chunk.
func plain(path, text string) document.Document {
	return document.Document{Path: path, Text: text, Chunks: []document.Chunk{{Length: len(text)}}}
}

// TestChoose checks that the passages of a page are parts of the texts, that they
// contain the matches, and that together they have no more characters than
// requested.
func TestChoose(t *testing.T) {
	var sentences []string
	for i := range 12 {
		sentences = append(sentences, fmt.Sprintf("The walrus number %d signs the treaty.", i))
	}
	docs := []document.Document{guide("many.md", sentences...), guide("one.md", "A walrus alone.", "Nobody is here."),
		plain("short.md", "Walrus."), guide("日本.md", strings.Repeat("日本語の文章です。", 200)+" walrus"), plain("empty.md", "")}
	for _, chars := range []int{0, 1, 199, 200, 700, 3000, 6000, 100_000} {
		total, count := 0, 0
		for i, passages := range choose(t, docs, "walrus treaty", chars) {
			d := docs[i]
			if len(passages) > 9 {
				t.Errorf("%d passages of %s, want at most 9", len(passages), d.Path)
			}
			for i, p := range passages {
				n := utf8.RuneCountInString(p.Text)
				total += n
				count++
				if n > 1600 || n < 200 && len(d.Text) >= 200 {
					t.Errorf("%d characters: a passage of %s has %d, want 200 to 1600: %q", chars, d.Path, n, p.Text)
				}
				if got := d.Text[p.Offset:]; !strings.HasPrefix(got, p.Text) {
					t.Errorf("the text of %s at %d is %.50q, not %.50q", d.Path, p.Offset, got, p.Text)
				}
				if strings.TrimSpace(p.Text) != p.Text || !utf8.ValidString(p.Text) {
					t.Errorf("passage %q of %s", p.Text, d.Path)
				}
				if i == 0 && !strings.Contains(strings.ToLower(p.Text), "walrus") {
					t.Errorf("the first passage of %s does not match: %q", d.Path, p.Text)
				}
			}
		}
		if total > chars || chars >= 3000 && count < 3 || chars < 200 && count > 0 {
			t.Errorf("%d passages with %d characters, of at most %d", count, total, chars)
		}
	}
}

// TestEachDocument checks that each document has a passage while characters are left,
// although it has no word of the query and others have windows without one.
func TestEachDocument(t *testing.T) {
	docs := []document.Document{guide("a.md", "The walrus signs."), guide("b.md", "The walrus of the north signs."),
		guide("c.md", "Another walrus signs."), guide("near.md", "A pinniped puts its name below."), plain("short.md", "Name.")}
	for i, passages := range choose(t, docs, "walrus signs", 100_000) {
		if len(passages) == 0 {
			t.Errorf("%s has no passage", docs[i].Path)
		}
	}
}

// TestWorthTheirTokens checks that a passage that repeats the text of another
// document's is left out, and that a document whose score is far below the best
// one has at most an excerpt.
func TestWorthTheirTokens(t *testing.T) {
	docs := []document.Document{guide("best.md", "The walrus signs the treaty of the north."),
		guide("same.md", "The walrus signs the treaty of the north."), guide("far.md", "Nobody signs.")}
	for i := range 20 {
		docs = append(docs, guide(fmt.Sprint(i, ".md"), "Nobody signs."))
	}
	texts := map[string]bool{}
	for i, passages := range choose(t, docs, "walrus signs treaty", 100_000) {
		for _, p := range passages {
			if texts[p.Text] {
				t.Errorf("%s repeats the passage %q", docs[i].Path, p.Text)
			}
			texts[p.Text] = true
			if n := utf8.RuneCountInString(p.Text); !strings.Contains(p.Text, "walrus") &&
				(n > 300 || len(passages) > 1) {
				t.Errorf("%s has %d passages, one of %d characters, which answers little: %q", docs[i].Path,
					len(passages), n, p.Text)
			}
		}
	}
	if len(texts) < 2 {
		t.Errorf("%d passages, want one for each text", len(texts))
	}
}

// TestLongLines checks that a word in a long text without sentences is in the
// passage.
func TestLongLines(t *testing.T) {
	var docs []document.Document
	for i, at := range []int{0, 30, 100, 159} {
		words := slices.Repeat([]string{"filler"}, 160)
		words[at] = "walrus"
		docs = append(docs, plain(fmt.Sprint(i, ".txt"), strings.Join(words, " ")))
	}
	for _, chars := range []int{300, 400, 800, 6000} {
		for i, passages := range choose(t, docs, "walrus", chars) {
			for _, p := range passages {
				if n := utf8.RuneCountInString(p.Text); !strings.Contains(p.Text, "walrus") || n < 200 {
					t.Errorf("maxChars %d: a passage of %s has %d characters, and the word %v", chars, docs[i].Path, n,
						strings.Contains(p.Text, "walrus"))
				}
			}
		}
	}
}

// TestPlaces checks that a passage has the page on which it begins, and the
// heading above its own beginning and not that above its chunk.
func TestPlaces(t *testing.T) {
	filler := strings.Repeat("This sentence is a filler about nothing at all. ", 12)
	var d document.Document
	for _, section := range []struct{ heading, text string }{
		{"", "The preface has a dolphin. "}, {"One", "A walrus lives here. "}, {"Two", "Two seals swim. "},
		{"Two > Three", "Three whales sing. "},
	} {
		d.Pages = append(d.Pages, document.Page{Offset: len(d.Text) + 10, Label: fmt.Sprint("page ", len(d.Pages))})
		if section.heading != "" {
			d.Sections = append(d.Sections, document.Section{Offset: len(d.Text), Heading: section.heading})
		}
		d.Text += section.heading + "\n\n" + filler + section.text + filler + "\n\n"
	}
	half := d.Sections[1].Offset
	d.Chunks = []document.Chunk{{Length: half, Heading: "The beginning"},
		{Offset: half, Length: len(d.Text) - half, Heading: "Two"}}
	for word, want := range map[string][2]string{"dolphin": {"", "page 0"}, "walrus": {"One", "page 1"},
		"seals": {"Two", "page 2"}, "whales": {"Two > Three", "page 3"}} {
		p := choose(t, []document.Document{d}, word, 400)[0][0]
		if got := [2]string{p.Heading, p.Page}; !strings.Contains(p.Text, word) || got != want {
			t.Errorf("%s: heading and page %q of %q, want %q", word, got, p.Text, want)
		}
	}
}

// TestDamagedText checks that a text that is shorter than its chunks has no
// passages.
func TestDamagedText(t *testing.T) {
	p := &page{docs: []document.Document{{Text: "Walrus."}}, chunks: []document.Chunk{{Length: 7}}}
	out, err := passage.Choose(t.Context(), cutOff{p}, 1, []passage.Chunk{{Score: 1}}, nil, 1000)
	if err != nil || out[0] != nil {
		t.Errorf("Choose() = %v, %v, want no passage", out, err)
	}
}

// TestWrongSize checks that a chunk beyond the end of its text has no passage.
func TestWrongSize(t *testing.T) {
	p := &page{docs: []document.Document{{Text: "Walrus."}}, chunks: []document.Chunk{{Offset: 1000, Length: 7}}}
	out, err := passage.Choose(t.Context(), p, 1, []passage.Chunk{{Score: 1}}, nil, 1000)
	if err != nil || out[0] != nil {
		t.Errorf("Choose() = %v, %v, want no passage", out, err)
	}
}

// A cutOff is a page whose texts have lost their ends.
type cutOff struct{ *page }

func (c cutOff) Contents(ctx context.Context, chunks []passage.Chunk) ([]passage.Content, error) {
	out, err := c.page.Contents(ctx, chunks)
	for i := range out {
		out[i].Text = out[i].Text[:len(out[i].Text)/2]
	}
	return out, err
}

// TestWindows checks that the excerpts behind the whole chunks are the ones with the
// most different words, whichever documents they are from, and that those that are
// close together are one passage, across chunks too.
func TestWindows(t *testing.T) {
	filler := strings.Repeat("Nothing of interest is in this line of text.\n", 8)
	whole := document.Document{Text: "The walrus signs the treaty of the north. " + filler}
	whole.Chunks = []document.Chunk{{Length: len(whole.Text)}}
	again := document.Document{Text: "The walrus signs the treaty of the south. " + filler}
	again.Chunks = []document.Chunk{{Length: len(again.Text)}}
	two := filler + "A walrus signs here, and says what it wants of the treaty.\n"
	other := document.Document{Text: two + "The treaty of the walrus follows. It is a long one, and the walrus signs it.\n" + filler + filler + filler +
		"The last walrus.\n" + filler}
	other.Chunks = []document.Chunk{{Length: len(two)}, {Offset: len(two), Length: len(other.Text) - len(two)}}
	out := choose(t, []document.Document{whole, again, other}, "walrus signs treaty", 2000)
	joined := slices.ContainsFunc(out[2], func(p search.Passage) bool {
		return strings.Contains(p.Text, "what it wants") && strings.Contains(p.Text, "treaty of the walrus follows")
	})
	if !joined {
		t.Errorf("passages %+v, want one with the end of the first chunk and the beginning of the second", out[2])
	}
	for _, p := range out[2] {
		if !strings.Contains(p.Text, "walrus") {
			t.Errorf("passage %q has no word of the query", p.Text)
		}
	}
	// A window with fewer words comes later, so its characters are spent first.
	for _, p := range choose(t, []document.Document{whole, again, other}, "walrus signs treaty", 1500)[2] {
		if strings.Contains(p.Text, "The last walrus") {
			t.Errorf("passage %q, want the ones with more words", p.Text)
		}
	}
}

// TestBaseValue checks that an excerpt of a much better chunk precedes one with more
// words.
func TestBaseValue(t *testing.T) {
	p := &page{}
	var chunks []passage.Chunk
	for i, x := range []struct {
		text  string
		size  int
		score float64
	}{
		{"The first walrus signs here. ", 380, 16},
		{"The second walrus signs there. ", 380, 15},
		{"Only the walrus is in this part. ", 220, 12},
		{"Both, a walrus and signs, are in this part. ", 220, 7},
	} {
		text := x.text + strings.Repeat("Nothing follows it. ", x.size/20)
		text = text[:x.size]
		p.docs = append(p.docs, document.Document{Text: text})
		p.chunks = append(p.chunks, document.Chunk{Length: len(text)})
		chunks = append(chunks, passage.Chunk{Number: i, Document: i, Score: x.score})
	}
	conditions := []passage.Condition{{Terms: []string{"walrus"}, Weight: 1}, {Terms: []string{"sign"}, Weight: 1}}
	out, err := passage.Choose(t.Context(), p, len(chunks), chunks, conditions, 1000)
	if err != nil || out[2] == nil || out[3] != nil {
		t.Errorf("Choose() = %+v, %v, want passages of the first three documents", out, err)
	}
}
