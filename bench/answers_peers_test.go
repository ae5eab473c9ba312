package bench

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/analysis"
	"github.com/knowhow-mcp/knowhow/internal/extract"
)

// answersPeers returns the folder that bench/answers-peers filled, or "".
func answersPeers(b *testing.B) string {
	b.Helper()
	dir := os.Getenv("ANSWERS_PEERS")
	if dir == "" {
		return ""
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "PACKAGES"))
	}
	if err != nil {
		b.Fatalf("ANSWERS_PEERS: %v: run bench/answers-peers FOLDER to fill the folder", err)
	}
	return dir
}

// functionWords are left out of a question before its words are searched.
var functionWords = strings.Fields(`
	a about all also an and any are as at be been but by can cannot could did do does doing done each for from get gets
	had has have having how i if in into instead is isn it its just let like make makes may me more most must my need no
	not of off on once one only or other our out over should so some such than that the their them then there these they
	this those through to too under until up use used uses using vs want was way we were what when where whether which
	while who why will with within without would you your`)

// questionWord matches words. In Japanese, these are runs of Han or of Katakana, because
// Hiragana between them are particles and endings.
var questionWord = regexp.MustCompile(`[\p{Han}々]+|[\p{Katakana}ー]+|[\p{Latin}\p{N}_]+`)

// contentWords returns the words of a question in lower case, without those of
// one byte, those that occur before, and function words of English and of its language.
// If only function words remain, it returns these.
func contentWords(q question) []string {
	var all, content []string
	for _, w := range questionWord.FindAllString(strings.ToLower(q.Question), -1) {
		if len(w) < 2 || slices.Contains(all, w) {
			continue
		}
		all = append(all, w)
		if !slices.Contains(functionWords, w) {
			content = append(content, w)
		}
	}
	if len(content) == 0 {
		return all
	}
	if q.language != analysis.English { // the list above is that of English
		return analysis.Significant(content, []analysis.Language{q.language})
	}
	return content
}

// maxGrepChars is how much of the output of grep a client reads, and
// maxReadChars of a file.
const (
	maxGrepChars = 8_000
	maxReadChars = 16_000 // as read_content returns
)

// A grepping searches files as a client with grep does.
type grepping struct {
	b     testing.TB
	dir   string
	files map[string][]string // by word, the files that contain it
}

func grepPages(b testing.TB, dir string) *grepping {
	b.Helper()
	if _, err := exec.LookPath("grep"); err != nil {
		b.Skip("grep is not installed")
	}
	return &grepping{b, dir, map[string][]string{}}
}

// run returns the output of grep for a word, without case, and "" if nothing
// matches. Words of Japanese have no blanks around them, so they may be parts of others.
func (g *grepping) run(word string, args ...string) string {
	g.b.Helper()
	if !strings.ContainsFunc(word, analysis.IsCJK) {
		args = append([]string{"-w"}, args...)
	}
	cmd := exec.CommandContext(g.b.Context(), "grep", slices.Concat([]string{"-iF", "-e", word}, args)...)
	cmd.Dir = g.dir
	cmd.Env = []string{"LC_ALL=C.UTF-8", "PATH=" + os.Getenv("PATH")}
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !(ok && exit.ExitCode() == 1) {
		g.b.Fatalf("grep %q: %v", word, err)
	}
	return string(out)
}

// containing returns the files that contain a word.
func (g *grepping) containing(word string) []string {
	files, ok := g.files[word]
	if !ok {
		files = strings.Split(strings.TrimSuffix(g.run(word, "-rl", "."), "\n"), "\n")
		if files[0] == "" {
			files = nil
		}
		g.files[word] = files
	}
	return files
}

// search orders the files by how many words of the question they contain, then
// by path, and returns their lines with the rarest of these words, until
// they have maxGrepChars characters.
func (g *grepping) search(q question) answerReply {
	words := contentWords(q)
	slices.SortStableFunc(words, func(x, y string) int { return cmp.Compare(len(g.containing(x)), len(g.containing(y))) })
	found := map[string][]string{} // by file, the words in it, rarest first
	for _, w := range words {
		for _, file := range g.containing(w) {
			found[file] = append(found[file], w)
		}
	}
	files := make([]string, 0, len(found))
	for file := range found {
		files = append(files, file)
	}
	slices.SortFunc(files, func(x, y string) int {
		return cmp.Or(-cmp.Compare(len(found[x]), len(found[y])), cmp.Compare(x, y))
	})
	var r answerReply
	room := maxGrepChars
	for _, file := range files {
		if room <= 0 {
			break
		}
		var hit []string
		for line := range strings.Lines(g.run(found[file][0], "-nH", file)) {
			shown := firstChars(line, room)
			room -= len([]rune(shown))
			r.text += shown
			_, text, _ := strings.Cut(strings.TrimPrefix(shown, file+":"), ":")
			hit = append(hit, withoutMarkup(text))
		}
		r.hits = append(r.hits, strings.Join(hit, " … "))
	}
	r.pages = files
	r.readOn = func() (all, text string) {
		data, err := os.ReadFile(filepath.Join(g.dir, files[0]))
		if err != nil {
			g.b.Fatal(err)
		}
		number, _, _ := strings.Cut(g.run(found[files[0]][0], "-n", files[0]), ":")
		line, err := strconv.Atoi(number)
		if err != nil {
			g.b.Fatal(err)
		}
		lines := strings.SplitAfter(string(data), "\n")
		all = firstChars(strings.Join(lines[line-1:], ""), maxReadChars)
		return all, withoutMarkup(all)
	}
	return r
}

func firstChars(s string, n int) string {
	if runes := []rune(s); len(runes) > n {
		return string(runes[:n])
	}
	return s
}

var (
	tags   = regexp.MustCompile(`<[^<>]*>`)
	fonts  = regexp.MustCompile(`\\f(\[\w*\]|\(..|.)`)
	macros = regexp.MustCompile(`(?m)^\.[A-Za-z]+ ?`)
)

// withoutMarkup returns the text of HTML or roff as a reader understands it.
func withoutMarkup(s string) string {
	s = html.UnescapeString(tags.ReplaceAllString(s, ""))
	return strings.ReplaceAll(macros.ReplaceAllString(fonts.ReplaceAllString(s, ""), ""), `\-`, "-")
}

// A qmd is the search program qmd with a separate index.
type qmd struct {
	b          *testing.B
	node, main string // paths
	home       string
}

// openQMD indexes the text of the pages, unless an earlier call has done so. It
// skips the benchmark if qmd is not installed.
func openQMD(b *testing.B, pages corpus) *qmd {
	b.Helper()
	dir := answersPeers(b)
	if dir == "" {
		b.Skip("qmd is not installed: run bench/answers-peers FOLDER, which needs npm, and set ANSWERS_PEERS to the folder")
	}
	modules := filepath.Join(dir, "node_modules")
	p := &qmd{
		b:    b,
		node: filepath.Join(modules, "node", "bin", "node"),
		main: filepath.Join(modules, "@tobilu", "qmd", "dist", "cli", "qmd.js"),
		home: filepath.Join(workDir(b), "qmd-"+pages.label),
	}
	text := newCorpus(b, pages.label+"-text", filepath.Join(workDir(b), pages.label+"-text"), pages.key+fileHash(b, program(b)))
	text.fill(b, func() error {
		if err := writeText(b.Context(), text.source, pages.source); err != nil {
			return err
		}
		if err := os.RemoveAll(p.home); err != nil {
			return err
		}
		if err := os.Mkdir(p.home, 0o700); err != nil {
			return err
		}
		p.run("collection", "add", text.source, "--name", "pages")
		return nil
	})
	return p
}

// writeText writes the text of each document of a folder as Markdown, because
// qmd does not recognize HTML or manual pages.
func writeText(ctx context.Context, to, from string) error {
	return eachText(ctx, from, func(name string, t *extract.Text) error {
		return writeSettled(filepath.Join(to, filepath.Dir(name)), filepath.Base(name)+".md", fmt.Sprintf("# %s\n\n%s\n", t.Title, t.Body))
	})
}

// eachText calls do for the text of each document of a folder, with its path
// inside the folder.
func eachText(ctx context.Context, dir string, do func(name string, t *extract.Text) error) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		t, err := extract.Extract(ctx, extract.Input{Name: path, Data: data})
		if err != nil {
			return nil // a page without text, which this program leaves out too
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		return do(name, t)
	})
}

// run runs a command of qmd and returns its output.
func (p *qmd) run(args ...string) string {
	p.b.Helper()
	cmd := exec.CommandContext(waitContext(p.b), p.node, append([]string{p.main}, args...)...)
	cmd.Dir = p.home
	cmd.Env = []string{"HOME=" + p.home, "PATH=" + os.Getenv("PATH"), "NO_COLOR=1"}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.b.Fatalf("qmd %q: %v\n%s", args, err, stderr.Bytes())
	}
	return string(out)
}

// qmdHit matches the beginning of a hit, in the plain output and in JSON.
var qmdHit = regexp.MustCompile(`(?m)^(?:qmd://|  \{$)`)

// qmdFile matches the file of a hit and its line.
var qmdFile = regexp.MustCompile(`(qmd://[^\s":]+)(?:",\s+"line": |:)?(\d*)`)

// search searches by words (BM25).
func (p *qmd) search(query string, args ...string) answerReply {
	r, at := qmdReply(p.run(slices.Concat([]string{"search"}, args, []string{"--", query})...))
	r.readOn = func() (all, text string) {
		all = p.run("get", "--", at)
		return all, lineNumbers.ReplaceAllString(all, "")
	}
	return r
}

// qmdReply returns the output of a search in its parts, and the place of the
// first hit as the command get understands it.
func qmdReply(out string) (r answerReply, at string) {
	r.text = out
	starts := qmdHit.FindAllStringIndex(out, -1)
	for i, start := range starts {
		end := len(out)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		hit := out[start[0]:end]
		r.hits = append(r.hits, strings.ReplaceAll(hit, `\n`, "\n"))
		if file := qmdFile.FindStringSubmatch(hit); file != nil {
			r.pages = append(r.pages, file[1])
			at = cmp.Or(at, file[1]+":"+cmp.Or(file[2], "1"))
		}
	}
	return r, at
}

var lineNumbers = regexp.MustCompile(`(?m)^ *\d+: `)

func TestContentWords(t *testing.T) {
	for _, tt := range []struct{ question, language, want string }{
		{"How do I change the message of my last commit in git?", "en", "change message last commit git"},
		{"asyncio.gather(*tasks) or gather", "en", "asyncio gather tasks"},
		{"what is it", "en", "what is it"},
		{"", "en", ""},
		{"Wie groß ist die Netzmaske eines IPv6-Subnetzes?", "de", "groß netzmaske ipv6 subnetzes"},
		{"Faut-il l'initialiser avant d'appeler drand48 ?", "fr", "initialiser avant appeler drand48"},
		{"swapon() で新しいスワップ領域の優先度を上げる", "ja", "swapon 新 スワップ 領域 優先度 上"},
	} {
		q := question{Question: tt.question, language: analysis.LanguageOf(tt.language)}
		if got := strings.Join(contentWords(q), " "); got != tt.want {
			t.Errorf("contentWords(%q) = %q, want %q", tt.question, got, tt.want)
		}
	}
}

func TestGrepping(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.html":    "<p>Git keeps history.</p>\n<p>Nothing.</p>\n<p>Git again</p>\n",
		"b/two.1":   "The log of\n.B git\n\\fBTo\\fP amend \\-\\-all\nafter\n",
		"c.html":    "nothing\n",
		"near.html": "amended gits\n",
	} {
		if err := writeSettled(filepath.Join(dir, filepath.Dir(name)), filepath.Base(name), text); err != nil {
			t.Fatal(err)
		}
	}
	r := grepPages(t, dir).search(question{Question: "how to amend in Git"})
	if want := []string{"./b/two.1", "./a.html"}; !slices.Equal(r.pages, want) || !strings.HasPrefix(r.text, "./b/two.1:3:") {
		t.Errorf("pages are %q, text %q", r.pages, r.text)
	}
	want := []string{"To amend --all\n", "Git keeps history.\n … Git again\n"}
	if !slices.Equal(r.hits, want) {
		t.Errorf("hits are %q, want %q", r.hits, want)
	}
	if all, text := r.readOn(); !strings.HasPrefix(all, `\fBTo`) || text != "To amend --all\nafter\n" {
		t.Errorf("reading on returned %q, %q", all, text)
	}
	if r := grepPages(t, dir).search(question{Question: "unheard of"}); r.text != "" || len(r.pages) != 0 || r.hits != nil {
		t.Errorf("a search that finds nothing returned %+v", r)
	}
}

func TestQMDReply(t *testing.T) {
	for out, want := range map[string]struct {
		pages string
		at    string
		hits  int
	}{
		"qmd://pages/a.html.md:62 #42241c\nTitle: A\nScore:  95%\n\n@@ -61,4 @@\ntext\n\n\nqmd://pages/b.md #59662a\nTitle: B\n": {"qmd://pages/a.html.md qmd://pages/b.md", "qmd://pages/a.html.md:62", 2},
		"qmd://pages/b.md #59662a\nTitle: B\n": {"qmd://pages/b.md", "qmd://pages/b.md:1", 1},
		"[\n  {\n    \"docid\": \"#05d49c\",\n    \"file\": \"qmd://pages/a.md\",\n    \"line\": 11,\n    \"snippet\": \"x\\ny\"\n  },\n  {\n    \"file\": \"qmd://pages/b.md\"\n  }\n]\n": {"qmd://pages/a.md qmd://pages/b.md", "qmd://pages/a.md:11", 2},
		"No results found.\n": {"", "", 0},
		"[]\n":                {"", "", 0},
	} {
		r, at := qmdReply(out)
		if pages := strings.Join(r.pages, " "); pages != want.pages || at != want.at || len(r.hits) != want.hits {
			t.Errorf("qmdReply(%q) = %q, %q and %d hits, want %+v", out, pages, at, len(r.hits), want)
		}
	}
}
