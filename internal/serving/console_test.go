package serving_test

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/console"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/embed"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/index"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/repository"
	"github.com/knowhow-mcp/knowhow/internal/serving"
	websites "github.com/knowhow-mcp/knowhow/internal/site"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// A consoleSite serves the folders docs and secret, a repository, a site and notes. With
// users, ann may read docs, repo and site, and bob may read everything.
type consoleSite struct {
	handler http.Handler
	docs    string // the folder
	access  string // the access file
	users   *users.Table
}

// address is that of the site.
const (
	siteAddress = "http://site.example/guide/"
	repoAddress = "git+https://git.example/team/repo"
)

const guideText = "How the pumps of the station are started, stopped and maintained, and who is called if one of them fails."

// newConsoleSite returns a site of some labels.
func newConsoleSite(t *testing.T, withUsers bool, labels ...string) *consoleSite {
	t.Helper()
	dir := t.TempDir()
	f := &datafolder.Folder{Dir: filepath.Join(dir, "data"), Log: slog.New(slog.DiscardHandler),
		Model: datafolder.Model{Queries: letters{}}}
	if err := f.OpenIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	remote, err := repository.Parse(repoAddress)
	if err != nil {
		t.Fatal(err)
	}
	guide, err := websites.Parse(siteAddress)
	if err != nil {
		t.Fatal(err)
	}
	pages, page, ok := guide.File(f.Dir, "start", siteAddress+"start")
	if !ok {
		t.Fatal("the site has no file for its page")
	}
	docs, secret := filepath.Join(dir, "docs"), filepath.Join(dir, "secret")
	for name, text := range map[string]string{
		filepath.Join(docs, "a.md"):        "original of a",
		filepath.Join(docs, "b.zip"):       "an archive",
		filepath.Join(docs, "sub", "c.md"): "original of c",
		filepath.Join(secret, "s.md"):      "zzsecret",
		filepath.Join(repository.Open(remote.Dir(f.Dir), remote, nil).Root(), "README.md"): "original of the repository",
		filepath.Join(pages, page): "<h1>original of the page</h1>",
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(secret, "s.md"), filepath.Join(docs, "link.md")); err != nil {
		t.Log("links cannot be made:", err)
	}
	all := []document.Source{{Label: "docs", Path: docs}, {Label: "secret", Path: secret}, {Label: "repo", Path: repoAddress},
		{Label: "site", Path: siteAddress}, {Label: "one", Path: filepath.Join(docs, "a.md")}}
	var sources []document.Source
	for _, src := range all {
		if strings.Contains(" "+strings.Join(labels, " ")+" ", " "+src.Label+" ") {
			sources = append(sources, src)
		}
	}
	note := file("docs", ".notes/a.md", "a note", "a note about alpha")
	start := file("site", "start", "Start", "alpha start")
	start.URL = siteAddress + "start"
	part := file("site", "start/part.txt", "Part", "alpha part")
	part.URL = siteAddress + "start"
	served := map[string]bool{}
	for _, src := range sources {
		served[src.Label] = true
		if err := f.Index.AddSource(t.Context(), src); err != nil {
			t.Fatal(err)
		}
		if err := f.Index.SetLeftOut(t.Context(), src.Label, index.LeftOut{Counts: map[string]int{"hidden": 1},
			Paths: []index.LeftOutPath{{Path: "." + src.Label, Reason: "hidden"}}}); err != nil {
			t.Fatal(err)
		}
	}
	zipped, hidden := file("docs", "b.zip/m.md", "M", "alpha m"), file("secret", "s.md", "S", "alpha s")
	zipped.Pages = []document.Page{{Label: "iv"}, {Offset: 6, Label: "1"}}
	hidden.Pages = []document.Page{{Label: "secret"}}
	var changes []document.Change
	for _, d := range []document.Document{file("docs", "a.md", "A", "alpha a"), zipped,
		file("docs", "sub/c.md", "C", "alpha c"), file("docs", "gone.md", "Gone", "alpha gone"),
		file("docs", "link.md", "Link", "alpha link"), note, hidden,
		file("repo", "README.md", "R", "alpha r"), start, part, file("one", "a.md", "A", "alpha one"),
		file("one", "a.md/x", "X", "alpha x"), file("docs", "v1/guide.html", "Guide", guideText),
		file("docs", "v2/guide.txt", "The guide", guideText+" And more."), file("repo", "other.txt", "Copy", guideText),
		file("repo", "guide.md", "Other guide", "Zebras are unlike all of this: zz zzz zzzz.")} {
		if served[d.Label] {
			d.Hash = fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(d.Text)))
			changes = append(changes, document.Change{Put: &d})
		}
	}
	if err := f.Index.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	for n := 1; n > 0; {
		var err error
		if n, err = f.Index.EmbedNext(t.Context(), letters{}, labels, 100); err != nil {
			t.Fatal(err)
		}
	}
	var o users.Options
	name := filepath.Join(dir, "access.json")
	if withUsers {
		user := func(name string, read ...string) access.User {
			sum := sha256.Sum256([]byte(name))
			return access.User{Name: name, SHA256: hex.EncodeToString(sum[:]), Read: read}
		}
		err := access.Edit(t.Context(), name, func(c *access.Content) error {
			c.Users = []access.User{user("ann", "docs", "repo", "site", "one"), user("bob", access.All)}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		o.File = access.Open(name, nil)
	}
	s := serving.New(serving.Options{Folder: f, Sources: sources, Version: "devel", Users: o, TokenVariable: "KNOWHOW_TOKEN",
		Log: slog.New(slog.DiscardHandler)})
	guard := httpguard.Options{Routes: s.Routes(), Refuse: mcpserver.Refuse}
	if withUsers {
		guard.Authenticate = s.Users().Authenticate
	}
	return &consoleSite{httpguard.New(guard), docs, name, s.Users()}
}

// letters is an embedder to which texts with the same letters mean the same.
type letters struct{}

func (letters) Embed(_ context.Context, texts []string, _ embed.Kind) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = make([]float32, 27)
		out[i][26] = 0.1
		for _, r := range text {
			if r >= 'a' && r <= 'z' {
				out[i][r-'a']++
			}
		}
		embed.Normalize(out[i])
	}
	return out, nil
}

func (letters) ID() string     { return "letters" }
func (letters) Dimension() int { return 27 }
func (letters) MaxTokens() int { return 0 }

// get returns the answer to a user.
func (s *consoleSite) get(user, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, host+target, nil)
	r.Header.Set("Authorization", "Bearer "+user)
	w := httptest.NewRecorder()
	s.handler.ServeHTTP(w, r)
	return w
}

func fileOf(label, path string) string {
	return "/console/file?id=" + url.QueryEscape(document.IDOf(label, path))
}

func pagesOf(label, path string) string {
	return "/console/pages?id=" + url.QueryEscape(document.IDOf(label, path))
}

func similarTo(label, path string) string {
	return "/console/similar?id=" + url.QueryEscape(document.IDOf(label, path))
}

func TestConsoleSimilar(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t, true, "docs", "secret", "repo", "site", "one")
	ask := func(user, label, path string) (list []console.Similar) {
		t.Helper()
		w := s.get(user, similarTo(label, path))
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 {
			t.Fatalf("%s of %s = %d %s: %v", path, label, w.Code, w.Body, err)
		}
		return list
	}
	list := ask("ann", "docs", "a.md")
	if len(list) != 8 || !slices.IsSortedFunc(list, func(a, b console.Similar) int { return cmp.Compare(b.Score, a.Score) }) {
		t.Errorf("there are %d documents %+v, want the best 8", len(list), list)
	}
	if i := slices.IndexFunc(list, func(s console.Similar) bool {
		return s.Source == "secret" || s.ID == document.IDOf("docs", "a.md")
	}); i >= 0 {
		t.Errorf("ann is told about %+v", list[i])
	}
	if list = ask("bob", "docs", "a.md"); !slices.ContainsFunc(list, func(s console.Similar) bool { return s.Source == "secret" }) {
		t.Errorf("bob is told about %+v only", list)
	}
	list = ask("ann", "docs", "v1/guide.html")
	for _, d := range list {
		if d.Path == "v2/guide.txt" || d.Path == "other.txt" {
			t.Errorf("a guide is similar to itself in another form, %s", d.Path)
		}
		if d.Score < 0.45 || d.Score < 0.7*list[0].Score {
			t.Errorf("%s is not similar: %+v", d.Path, list)
		}
	}
	if list = ask("ann", "docs", "a.md"); !slices.ContainsFunc(list, func(s console.Similar) bool { return s.Path == "a.md" && s.Source == "one" }) {
		t.Errorf("another document with the same name is missing in %+v", list)
	}
	if w := s.get("ann", similarTo("secret", "s.md")); w.Code != http.StatusNotFound {
		t.Errorf("a document that ann may not read has %d %s", w.Code, w.Body)
	}
}

func TestConsoleFile(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t, true, "docs", "secret", "repo", "site", "one")
	for _, tc := range []struct {
		user, label, path string
		want              string // "" is 404
	}{
		{"ann", "docs", "a.md", "original of a"},
		{"bob", "docs", "a.md", "original of a"},
		{"ann", "docs", "sub/c.md", "original of c"},
		{"ann", "docs", "b.zip/m.md", ""},
		{"ann", "docs", "gone.md", ""},
		{"ann", "docs", "link.md", ""},
		{"bob", "docs", "link.md", ""},
		{"ann", "docs", ".notes/a.md", ""},
		{"ann", "docs", "never.md", ""},
		{"ann", "secret", "s.md", ""},
		{"bob", "secret", "s.md", "zzsecret"},
		{"ann", "repo", "README.md", "original of the repository"},
		{"ann", "site", "start", "<h1>original of the page</h1>"},
		{"ann", "site", "start/part.txt", ""},
		{"ann", "one", "a.md", "original of a"},
		{"ann", "one", "a.md/x", ""},
	} {
		status := http.StatusOK
		if tc.want == "" {
			status = http.StatusNotFound
		}
		w := s.get(tc.user, fileOf(tc.label, tc.path))
		if w.Code != status || tc.want != "" && w.Body.String() != tc.want || strings.Contains(w.Body.String(), s.docs) {
			t.Errorf("%s gets %s of %s: %d %s, want %d %s", tc.user, tc.path, tc.label, w.Code, w.Body, status, tc.want)
		}
	}
	if err := os.Rename(filepath.Join(s.docs, "sub"), filepath.Join(s.docs, "..", "moved")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(s.docs, "..", "moved"), filepath.Join(s.docs, "sub")); err == nil {
		if w := s.get("ann", fileOf("docs", "sub/c.md")); w.Code != http.StatusNotFound {
			t.Errorf("through a link there is %d %s", w.Code, w.Body)
		}
	}
}

// The events of a caller have what the status of the caller has, and end with its rights.
func TestConsoleEvents(t *testing.T) {
	t.Parallel()
	s := newConsoleSite(t, true, "docs", "secret")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.users.Run(ctx) })
	defer running.Wait()
	defer cancel()
	server := httptest.NewServer(s.handler)
	defer server.Close()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/console/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer ann")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	events := bufio.NewReader(res.Body)
	name, _ := events.ReadString('\n')
	data, err := events.ReadString('\n')
	if want := "data: " + s.get("ann", "/console/status").Body.String(); err != nil || name != "event: status\n" || data != want ||
		strings.Contains(data, "secret") {
		t.Errorf("the first event is %s%s, want %s: %v", name, data, want, err)
	}
	err = access.Edit(t.Context(), s.access, func(c *access.Content) error {
		c.Users = c.Users[1:]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(events); err != nil || strings.Contains(string(rest), "secret") {
		t.Errorf("the stream ends with %s: %v", rest, err)
	}
}

// The commands and entries name the server as the caller has reached it, and no token.
func TestConsoleConnect(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		users       bool
		labels      []string
		name, token string
	}{
		{false, []string{"docs", "secret"}, "knowhow", ""},
		{true, []string{"docs", "secret", "repo"}, "knowhow", "KNOWHOW_TOKEN"},
		{true, []string{"docs", "secret"}, "docs", "KNOWHOW_TOKEN"}, // ann may read one of them
	} {
		s := newConsoleSite(t, tc.users, tc.labels...)
		var list []console.Client
		w := s.get("ann", "/console/connect")
		if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || w.Code != 200 || len(list) < 10 ||
			strings.Contains(w.Body.String(), "Bearer ann") {
			t.Fatalf("%v = %d %s: %v", tc.labels, w.Code, w.Body, err)
		}
		i := slices.IndexFunc(list, func(c console.Client) bool { return c.Client == "claude-code" })
		for _, part := range []string{list[i].Command, list[i].Snippet} {
			for _, want := range []string{host + "/mcp", tc.name, tc.token} {
				if !strings.Contains(part, want) {
					t.Errorf("%s does not have %s", part, want)
				}
			}
		}
	}
}

// A caller with rights to some labels gets what a server of these labels alone answers.
func TestConsoleIsolation(t *testing.T) {
	t.Parallel()
	beside, alone := newConsoleSite(t, true, "docs", "secret", "repo", "site", "one"), newConsoleSite(t, false, "docs", "repo", "site", "one")
	compare := func(path string) string {
		t.Helper()
		got, want := beside.get("ann", path), alone.get("", path)
		g, w := fmt.Sprint(got.Code, got.Body), fmt.Sprint(want.Code, want.Body)
		if g != w || strings.Contains(g, "secret") && !strings.Contains(path, "secret") {
			t.Errorf("%s = %s, alone %s", path, g, w)
		}
		return g
	}
	for path, want := range map[string]string{
		"/console/left-out?source=docs":     `"paths":[{"path":".docs","reason":"hidden"}]`,
		"/console/left-out?source=docs&q=x": `"paths":[]`,
		"/console/left-out?source=secret":   "404",
		"/console/left-out?source=never":    "404",
		fileOf("docs", "a.md"):              "original of a",
		fileOf("secret", "s.md"):            "404",
		fileOf("docs", "never.md"):          "404",
		pagesOf("docs", "b.zip/m.md"):       `[{"offset":0,"label":"iv"},{"offset":6,"label":"1"}]`,
		pagesOf("docs", "a.md"):             `200 []`,
		pagesOf("docs", "never.md"):         "404",
		pagesOf("secret", "s.md"):           "404",
		similarTo("docs", "a.md"):           `"source":"docs"`,
		similarTo("site", "start"):          `"path":"start/part.txt"`,
		similarTo("secret", "s.md"):         "404",
	} {
		if got := compare(path); !strings.Contains(got, want) {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
	if got := beside.get("bob", "/console/left-out?source=secret").Body.String(); !strings.Contains(got, `".secret"`) {
		t.Errorf("bob sees %s", got)
	}
}
