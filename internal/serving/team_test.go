package serving_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/knowhow-mcp/knowhow/internal/access"
	"github.com/knowhow-mcp/knowhow/internal/audit"
	"github.com/knowhow-mcp/knowhow/internal/datafolder"
	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/httpguard"
	"github.com/knowhow-mcp/knowhow/internal/kb"
	"github.com/knowhow-mcp/knowhow/internal/kbmcp"
	"github.com/knowhow-mcp/knowhow/internal/mcpserver"
	"github.com/knowhow-mcp/knowhow/internal/searchmcp"
	"github.com/knowhow-mcp/knowhow/internal/serving"
	"github.com/knowhow-mcp/knowhow/internal/users"
)

// A team: users with different rights on one server. All that belongs to a label contains
// the mark of that label, and no answer to a user may contain the mark of a label that the
// user may not read. Two kinds of labels are told apart by it: of sources and of
// collections.

// teamSources and teamCollections are the numbers of labels of each kind.
const (
	teamSources     = 7
	teamCollections = 8
	teamLabels      = teamSources + teamCollections
)

// teamMark returns the mark of a label, which is also in the name of the label.
func teamMark(i int) string { return fmt.Sprintf("q%dzzz", i) }

// teamLabel returns a label: of a source, and from teamSources on of a collection.
func teamLabel(i int) string {
	if i < teamSources {
		return "src" + teamMark(i)
	}
	return "col" + teamMark(i)
}

// marks matches the marks of labels. No ID of a document matches.
var marks = regexp.MustCompile(`(?i)q(\d+)zzz`)

// A teamRight are the rights of a user.
type teamRight struct{ read, write []string }

// teamRights returns the rights of a user, which may change to those with other.
func teamRights(user int, other bool) teamRight {
	random := rand.New(rand.NewPCG(uint64(user), map[bool]uint64{true: 1}[other]))
	var r teamRight
	for i := range teamLabels {
		if random.IntN(3) == 0 {
			r.read = append(r.read, teamLabel(i))
		}
		if i >= teamSources && random.IntN(3) == 0 {
			r.write = append(r.write, teamLabel(i))
		}
	}
	switch user % 10 {
	case 1:
		r.write = nil
	case 2:
		r.read = nil
	case 4:
		r.read = r.read[:min(1, len(r.read))]
	}
	if user%2 == 1 {
		r.read = append(r.read, "kb")
	}
	switch user {
	case 5:
		r = teamRight{[]string{access.All}, []string{access.All}}
	case 6:
		r = teamRight{}
	case 7:
		r = teamRight{[]string{teamLabel(0)}, nil}
	case 8:
		r = teamRight{[]string{"kb"}, []string{access.All}}
	}
	return r
}

// sees returns the labels that may be read.
func (r teamRight) sees() map[int]bool {
	out := map[int]bool{}
	for i := range teamLabels {
		c := &access.Caller{Rights: access.Rights{Read: r.read}}
		out[i] = c.MayRead(teamLabel(i))
	}
	return out
}

// plus returns both rights.
func (r teamRight) plus(o teamRight) teamRight {
	return teamRight{slices.Concat(r.read, o.read), slices.Concat(r.write, o.write)}
}

func teamUser(i int) string { return fmt.Sprintf("user%02d", i) }

// teamDocuments returns the documents of the labels that are kept.
func teamDocuments(kept func(int) bool) (docs []document.Document) {
	for i := range teamLabels {
		if !kept(i) {
			continue
		}
		mark := teamMark(i)
		for n := range 6 {
			path := fmt.Sprintf("%s/file%d.txt", mark, n)
			if i >= teamSources {
				path = fmt.Sprintf(".notes/%s%d", mark, n)
			}
			text := fmt.Sprintf("# %sheading\n\ncommon alpha word %sword%d and beta%d text of %s in a long sentence.\n\n## second\n\ncommon %sagain",
				mark, mark, n, n, mark, mark)
			d := file(teamLabel(i), path, fmt.Sprintf("common %stitle%d", mark, n), text)
			d.Filename = mark + d.Filename
			d.Tags = nil
			docs = append(docs, d)
		}
		// The same text under every label.
		path := mark + "/same.txt"
		if i >= teamSources {
			path = ".notes/" + mark + "same"
		}
		docs = append(docs, file(teamLabel(i), path, "same", "The same common text under every label."))
	}
	return docs
}

// A teamSite is a server of a team.
type teamSite struct {
	t      testing.TB
	url    string
	client *http.Client
	access string // the access file
	log    string // the audit file
	folder *datafolder.Folder
	server *serving.Server
	stop   func()
}

// allNotes are the notes of all collections as a source.
var allNotes = []document.Source{{Label: "kb", Path: "kb"}}

// newTeamSite serves what is kept, and sources of notes, to some users, or to everybody
// without a record if list is nil.
func newTeamSite(t testing.TB, kept func(int) bool, notes []document.Source, list []access.User) *teamSite {
	t.Helper()
	dir := t.TempDir()
	s := &teamSite{t: t, access: filepath.Join(dir, "access.json"), log: filepath.Join(dir, "audit.jsonl"),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	s.folder = &datafolder.Folder{Dir: filepath.Join(dir, "data"), Log: slog.New(slog.DiscardHandler)}
	if err := s.folder.OpenIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	var sources []document.Source
	for i := range teamSources {
		if kept(i) {
			src := document.Source{Label: teamLabel(i), Path: "/srv/" + teamMark(i), Description: "about " + teamMark(i)}
			sources = append(sources, src)
			if err := s.folder.Index.AddSource(t.Context(), src); err != nil {
				t.Fatal(err)
			}
		}
	}
	sources = append(sources, notes...)
	var changes []document.Change
	docs := teamDocuments(kept)
	for i := range docs {
		changes = append(changes, document.Change{Put: &docs[i]})
	}
	if err := s.folder.Index.Apply(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
	var team users.Options
	record, err := audit.Open(audit.Options{Path: s.log, MaxBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	uploads, err := kbmcp.OpenUploads(kbmcp.UploadOptions{Dir: filepath.Join(dir, "uploads"), MaxOpen: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	if list != nil {
		s.grant(list)
		team.File = access.Open(s.access, nil)
		team.Calls = users.Calls{Check: record.Check,
			Record: func(c *audit.Call, _ string) error { return record.Write(c) }}
	}
	team.Limits.QueueWait = time.Minute
	s.server = serving.New(serving.Options{Folder: s.folder, Sources: sources, SourceTimeout: time.Minute,
		Groups: []searchmcp.Group{searchmcp.SearchTools, searchmcp.FessTools}, Version: "devel",
		Tools: &kbmcp.Options{Uploads: uploads, UploadPath: "/upload"}, Log: slog.New(slog.DiscardHandler), Domain: "all",
		Users: team})
	guard := httpguard.Options{Routes: s.server.Routes(), Refused: s.server.Users().Refused, Refuse: mcpserver.Refuse}
	if list != nil {
		guard.Authenticate = s.server.Users().Authenticate
	}
	server := httptest.NewServer(httpguard.New(guard))
	s.url = server.URL
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.server.Users().Run(ctx) })
	s.folder.Work(ctx, s.folder.Base(kb.Options{Sources: serving.Labels(serving.Indexed(sources))}), nil)
	s.stop = sync.OnceFunc(func() {
		server.Close()
		cancel()
		running.Wait()
		if err := record.Close(); err != nil {
			t.Error(err)
		}
		if err := uploads.Close(); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		s.stop()
		if err := s.folder.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// grant makes the users those of the access file.
func (s *teamSite) grant(list []access.User) {
	s.t.Helper()
	err := access.Edit(s.t.Context(), s.access, func(c *access.Content) error {
		c.Users = list
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// accessUser returns a user for the access file.
func accessUser(i int, r teamRight) access.User {
	sum := sha256.Sum256([]byte("token-" + teamUser(i)))
	return access.User{Name: teamUser(i), SHA256: hex.EncodeToString(sum[:]), Read: r.read, Write: r.write}
}

// A teamAnswer is the answer to a request.
type teamAnswer struct {
	status int
	header http.Header
	body   string
}

// send sends a request of a user.
func (s *teamSite) send(user int, method, path, body string, header ...string) teamAnswer {
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Error(err)
		return teamAnswer{}
	}
	r.Header.Set("Authorization", "Bearer token-"+teamUser(user))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
		return teamAnswer{}
	}
	defer res.Body.Close() // read to its end
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Errorf("%s %s: %v", method, path, err)
	}
	return teamAnswer{res.StatusCode, res.Header, string(data)}
}

// A teamClient is a client of a user, with a session at each path.
type teamClient struct {
	site *teamSite
	user int

	mu       sync.Mutex // guards what follows
	sessions map[string]string
	sent     map[string]int // by USER PATH TOOL
	id       int
}

func newTeamClient(s *teamSite, user int) *teamClient {
	return &teamClient{site: s, user: user, sessions: map[string]string{}, sent: map[string]int{}}
}

// count counts a call that must be recorded.
func (c *teamClient) count(path, tool string) {
	path, _, _ = strings.Cut(path, "?")
	if u, err := url.PathUnescape(path); err == nil {
		path = u
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent[teamUser(c.user)+" "+path+" "+tool]++
}

// http sends a request that is not of MCP.
func (c *teamClient) http(method, path, body string, header ...string) string {
	a := c.site.send(c.user, method, path, body, header...)
	c.count(path, method)
	return fmt.Sprint(a.status, " ", a.body)
}

// session returns the ID of the session at a path, which it opens.
func (c *teamClient) session(path string) string {
	c.mu.Lock()
	id := c.sessions[path]
	c.mu.Unlock()
	if id != "" {
		return id
	}
	a := c.site.send(c.user, "POST", path, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":`+
		`"2025-11-25","capabilities":{},"clientInfo":{"name":"team","version":"1"}}}`)
	c.count(path, teamTool(a, "initialize"))
	id = a.header.Get("Mcp-Session-Id")
	if id == "" {
		return "none"
	}
	a = c.site.send(c.user, "POST", path, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
	if a.status != http.StatusAccepted { // notifications are recorded only if they are refused
		c.count(path, "POST")
	}
	c.mu.Lock()
	c.sessions[path] = id
	c.mu.Unlock()
	return id
}

// teamTool returns what the record has as the tool: a request that no MCP server has
// answered has the method of HTTP.
func teamTool(a teamAnswer, tool string) string {
	if a.status != http.StatusOK {
		return "POST"
	}
	return tool
}

// mcp sends a request of MCP and returns its answer.
func (c *teamClient) mcp(path, method string, params any) string {
	session := c.session(path)
	c.mu.Lock()
	c.id++
	id := c.id
	c.mu.Unlock()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		c.site.t.Error(err)
	}
	a := c.site.send(c.user, "POST", path, string(body), "Mcp-Session-Id", session, "Mcp-Protocol-Version", "2025-11-25")
	tool := method
	if p, ok := params.(map[string]any); ok && method == "tools/call" {
		tool = p["name"].(string)
	}
	c.count(path, teamTool(a, tool))
	if a.status == http.StatusNotFound { // the source was hidden for a while
		c.mu.Lock()
		delete(c.sessions, path)
		c.mu.Unlock()
	}
	return strings.Replace(fmt.Sprint(a.status, " ", a.body), fmt.Sprintf(`"id":%d`, id), `"id":0`, 1)
}

// tool calls a tool.
func (c *teamClient) tool(path, name string, args map[string]any) string {
	return c.mcp(path, "tools/call", map[string]any{"name": name, "arguments": args})
}

// text returns the text of the result of a tool, for its members.
func resultText(answer string) string {
	_, body, _ := strings.Cut(answer, " ")
	var m struct {
		Result struct{ Content []struct{ Text string } }
	}
	if json.Unmarshal([]byte(body), &m) != nil || len(m.Result.Content) == 0 {
		return ""
	}
	return m.Result.Content[0].Text
}

// member returns a member of the result of a tool as text, "" if there is none.
func member(answer, name string) string {
	var m map[string]any
	if json.Unmarshal([]byte(resultText(answer)), &m) != nil || m[name] == nil {
		return ""
	}
	if f, ok := m[name].(float64); ok {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return fmt.Sprint(m[name])
}

// teamQueries are what users search for: words of all labels, and of a label.
func teamQuery(random *rand.Rand, label int) string {
	mark := teamMark(label)
	return []string{"common", "alpha word", mark + "word1", mark + "*", "title:common", "same text under every label",
		"label:" + teamLabel(label), "how is the common text in a long sentence", mark + "wrod1~", "*:*",
		"common OR " + mark + "again", "beta2 -" + mark + "title1", "file1", "filename:" + mark + "*"}[random.IntN(14)]
}

// A question is what is asked of a server, of which the answer is known not to depend on
// what others do at the same time.
type question struct {
	name string
	ask  func(*teamClient) string
}

// reading returns a question that changes nothing. label is the one that it may be about.
func reading(random *rand.Rand, label int) question {
	name, mark, query := teamLabel(label), teamMark(label), teamQuery(random, label)
	path, domain := "/mcp", "all"
	if label < teamSources && random.IntN(4) == 0 {
		path, domain = "/mcp/"+name, strings.ReplaceAll(name, "-", "_")
	}
	docPath := fmt.Sprintf("%s/file%d.txt", mark, random.IntN(6))
	if label >= teamSources {
		docPath = fmt.Sprintf(".notes/%s%d", mark, random.IntN(6))
	}
	id := document.IDOf(name, docPath)
	tool := func(tool string, args map[string]any) question {
		return question{path + " " + tool + fmt.Sprint(args), func(c *teamClient) string { return c.tool(path, tool, args) }}
	}
	get := func(path string) question {
		return question{path, func(c *teamClient) string { return c.http("GET", path, "") }}
	}
	post := func(path string, body map[string]any) question {
		data, _ := json.Marshal(body) // never fails
		return question{path + string(data), func(c *teamClient) string { return c.http("POST", path, string(data)) }}
	}
	escaped := url.QueryEscape(query)
	switch n := random.IntN(34); n {
	case 0, 1, 2:
		args := map[string]any{"query": query, "pageSize": 1 + random.IntN(100)}
		if random.IntN(2) == 0 {
			args["facets"] = map[string]any{"field": []string{"label", "filename"}, "query": []string{"label:" + name, mark + "*"}}
		}
		return tool(domain+"_search", args)
	case 3:
		return tool(domain+"_suggest", map[string]any{"prefix": []string{mark, "q", "co", mark + "w"}[random.IntN(4)], "num": 100})
	case 4:
		return tool(domain+"_popular_words", map[string]any{"seed": 1})
	case 5:
		return tool(domain+"_list_labels", map[string]any{})
	case 6:
		return tool(domain+"_health", map[string]any{})
	case 7:
		return tool(domain+"_get_document", map[string]any{"docId": id})
	case 8:
		return tool(domain+"_read_content", map[string]any{"docId": id, "maxChars": 40})
	case 9:
		return tool(domain+"_read_content", map[string]any{"path": []string{docPath, name + "/" + docPath}[random.IntN(2)]})
	case 10:
		return tool("kb_search", map[string]any{"query": query, "top": 100})
	case 11:
		return tool("kb_search", map[string]any{"query": query, "collection": name})
	case 12:
		return tool("kb_get", map[string]any{"source_path": docPath})
	case 13:
		return tool("kb_get", map[string]any{"document_id": 1_000_000 + random.IntN(10)})
	case 14:
		return get("/fess/api/v1/documents?num=100&facet.field=label&q=" + escaped)
	case 15:
		return get("/fess/api/v1/documents?num=20&fields.label=" + name + "&q=" + escaped)
	case 16:
		return get("/fess/api/v2/search?num=20&q=" + escaped)
	case 17:
		return get("/fess/api/v1/suggest-words?num=100&q=" + mark)
	case 18:
		return get("/fess/api/v" + strconv.Itoa(1+random.IntN(2)) + "/labels")
	case 19:
		return get("/fess/api/v" + strconv.Itoa(1+random.IntN(2)) + "/popular-words?seed=1")
	case 20:
		return get("/fess/api/v2/cache/" + id)
	case 21:
		return get("/fess/cache/?docId=" + id)
	case 22:
		return get("/fess/api/v1/suggest-words?q=c&num=100&label=" + name)
	case 23:
		return post("/kb/api/v1/search", map[string]any{"query": query, "top": 100})
	case 24:
		return post("/kb/api/v1/search", map[string]any{"query": query, "tags": []string{"collection:" + name}})
	case 25:
		return get("/kb/api/v1/documents?limit=1000&tag=collection:" + name)
	case 26:
		return get("/kb/api/v1/documents?limit=1000&source_path=" + url.QueryEscape(docPath))
	case 27:
		return get("/console/status?leftOut=" + name)
	case 28:
		return question{path + " resources/list", func(c *teamClient) string { return c.mcp(path, "resources/list", map[string]any{}) }}
	case 29:
		return question{path + " templates", func(c *teamClient) string {
			return c.mcp(path, "resources/templates/list", map[string]any{})
		}}
	case 30:
		uri := "fess://" + domain + "/doc/" + id + []string{"", "/content"}[random.IntN(2)]
		return question{path + " " + uri, func(c *teamClient) string {
			return c.mcp(path, "resources/read", map[string]any{"uri": uri})
		}}
	case 31:
		return question{path + " tools/list", func(c *teamClient) string { return c.mcp(path, "tools/list", map[string]any{}) }}
	case 32:
		return question{path + " HEAD", func(c *teamClient) string {
			return c.http([]string{"HEAD", "OPTIONS", "PUT"}[n%3], "/fess/api/v1/documents?q="+escaped, "")
		}}
	default:
		return question{path + " GET", func(c *teamClient) string {
			a := c.site.send(c.user, "GET", path, "")
			c.count(path, "GET")
			return fmt.Sprint(a.status, " ", a.body)
		}}
	}
}

// teamVarying matches what differs between two servers with the same documents, in
// addition to varying.
var teamVarying = regexp.MustCompile(`\d{4}-\d\d-\d\dT[\d:.]+|"(seconds|uptime|took|ms|etag|requestId)":[^,}]*|\\?"(id|document_id)\\?":\d+`)

// normal returns an answer without what differs between two servers.
func normal(answer string) string {
	answer = strings.ReplaceAll(answer, `\"`, `"`)
	return teamVarying.ReplaceAllString(varying.ReplaceAllString(answer, ""), "")
}

// hidden returns the labels whose marks are in an answer to a question, though they may
// not be read. What the question contains is no secret.
func hidden(name, answer string, sees map[int]bool) (out []string) {
	for _, found := range marks.FindAllStringSubmatch(answer, -1) {
		i, _ := strconv.Atoi(found[1])
		if !sees[i] && !strings.Contains(strings.ToLower(name), strings.ToLower(found[0])) {
			out = append(out, found[0])
		}
	}
	return out
}

// TestTeamAnswers checks that a server with many users answers each like a server that
// serves only what the user may read.
func TestTeamAnswers(t *testing.T) {
	t.Parallel()
	var list []access.User
	for i := range 50 {
		list = append(list, accessUser(i, teamRights(i, false)))
	}
	whole := newTeamSite(t, func(int) bool { return true }, allNotes, list)
	questions := 120
	if testing.Short() {
		questions = 40
	}
	for _, user := range []int{0, 2, 3, 5, 6, 7, 8, 11, 14, 20} {
		t.Run(teamUser(user), func(t *testing.T) {
			r := teamRights(user, false)
			sees := r.sees()
			var notes []document.Source
			if slices.Contains(r.read, "kb") {
				notes = allNotes
			}
			for i := teamSources; i < teamLabels; i++ {
				if sees[i] {
					notes = allNotes
				}
			}
			// Another user with the same rights, so that the number of users is another one.
			alone := newTeamSite(t, func(i int) bool { return sees[i] }, notes, []access.User{accessUser(user, r)})
			one, many := newTeamClient(alone, user), newTeamClient(whole, user)
			random := rand.New(rand.NewPCG(uint64(user), 7))
			found := 0
			for range questions {
				q := reading(random, random.IntN(teamLabels))
				got, want := normal(q.ask(many)), normal(q.ask(one))
				// Popular words are those that users with the right to a label have searched for.
				if got != want && !strings.Contains(q.name, "popular") {
					t.Errorf("%s: (-alone +among others)\n%s", q.name, cmp.Diff(want, got))
				}
				if out := hidden(q.name, got, sees); out != nil {
					t.Errorf("%s contains %v: %s", q.name, out, got)
				}
				if marks.MatchString(got) {
					found++
				}
			}
			t.Logf("%d of %d answers have a mark", found, questions)
			if len(r.read) > 1 && found < questions/5 {
				t.Errorf("%d of %d answers have a mark: the test has no teeth", found, questions)
			}
		})
	}
}

// TestTeamHidden checks that what a user may not read, and what belongs to another user, is
// answered like what does not exist, whatever else is wrong with the request.
func TestTeamHidden(t *testing.T) {
	t.Parallel()
	// The first reads and writes nothing that there is. The second reads and writes one
	// collection, and the third everything.
	list := []access.User{
		accessUser(0, teamRight{[]string{"none"}, []string{"none"}}),
		accessUser(1, teamRight{[]string{teamLabel(teamSources)}, []string{teamLabel(teamSources)}}),
		accessUser(2, teamRight{[]string{access.All}, []string{access.All}}),
	}
	site := newTeamSite(t, func(int) bool { return true }, allNotes, list)
	owner := newTeamClient(site, 2)
	var numbers []string
	for n := range teamLabels * 7 {
		record, err := site.folder.Index.Record(t.Context(), int64(n+1))
		if err != nil {
			t.Fatal(err)
		}
		if record.Label != teamLabel(teamSources) && n > 20 && n%5 == 0 {
			numbers = append(numbers, strconv.FormatInt(record.Number, 10))
		}
	}
	job := member(owner.tool("/mcp", "kb_addnote", map[string]any{"text": "x", "collection": teamLabel(teamLabels - 1)}), "job_id")
	upload := member(owner.tool("/mcp", "kb_upload_start", map[string]any{"filename": "x.txt", "total_size": 1}), "upload_id")
	session := owner.session("/mcp")
	if len(numbers) < 10 || job == "" || upload == "" || session == "none" {
		t.Fatalf("documents %v, job %q, upload %q, session %q", numbers, job, upload, session)
	}
	// unknown is an ID of the same form that nothing has.
	unknown := func(id string) string {
		return strings.Map(func(r rune) rune {
			switch {
			case '0' <= r && r <= '9':
				return '9'
			case 'a' <= r && r <= 'f':
				return 'e'
			case 'A' <= r && r <= 'Z':
				return 'X'
			}
			return r
		}, id)
	}
	asked := 0
	check := func(user int, id, other, method, path, body string, header ...string) {
		t.Helper()
		var answers []string
		for _, id := range []string{id, other} {
			put := func(s string) string { return strings.ReplaceAll(s, "ID", id) }
			var all []string
			for _, h := range header {
				all = append(all, put(h))
			}
			a := site.send(user, method, put(path), put(body), all...)
			a.header.Del("Date")
			a.header.Del("Mcp-Session-Id")
			a.header.Del("Content-Length")
			text := fmt.Sprint(a.status, " ", a.header, " ", normal(a.body))
			answers = append(answers, regexp.MustCompile(`(?:\b|^)`+id+`(_|\b)`).ReplaceAllString(text, "ID$1"))
		}
		if asked++; answers[0] != answers[1] {
			t.Errorf("%s, %s %s %s with %s, and with %s, which does not exist:\n%s", teamUser(user), method, path, body, id, other,
				cmp.Diff(answers[1], answers[0]))
		}
	}
	for user := range 2 {
		c := newTeamClient(site, user)
		own := []string{"Mcp-Session-Id", c.session("/mcp"), "Mcp-Protocol-Version", "2025-11-25"}
		tool := func(id, other, name, args string) {
			t.Helper()
			check(user, id, other, "POST", "/mcp",
				fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, args), own...)
		}
		for _, n := range numbers {
			other := strings.Repeat("9", 9)
			for _, q := range [][3]string{
				{"GET", "", ""}, {"GET", "?x=1", ""}, {"HEAD", "", ""}, {"OPTIONS", "", ""}, {"PUT", "", ""}, {"DELETE", "", ""},
				{"POST", "/tags", `{"tags":["a"]}`}, {"POST", "/tags", `{"tags":[]}`}, {"POST", "/tags", `{`},
				{"POST", "/tags", `{"tags":["collection:none"]}`}, {"POST", "/tags", `{"tags":["collection:` + teamLabel(teamSources) + `"]}`},
				{"POST", "/tags", `{"tags":["collection:` + teamLabel(teamSources+1) + `"]}`},
				{"POST", "/tags", `{"tags":["collection:a","collection:b"]}`},
				{"DELETE", "/tags/a", ""}, {"DELETE", "/tags/collection:" + teamLabel(teamSources+1), ""}, {"DELETE", "/tags/", ""},
			} {
				check(user, n, other, q[0], "/kb/api/v1/documents/ID"+q[1], q[2])
			}
			for _, body := range []string{`{"text":"x"}`, `{}`, `{"title":""}`, `{"text":""}`, `[`} {
				check(user, n, other, "PATCH", "/kb/api/v1/notes/ID", body)
			}
			for _, args := range []string{`{"document_id":ID}`, `{"document_id":ID,"offset":500}`,
				`{"document_id":ID,"limit":1,"offset":1}`, `{"document_id":ID,"source_path":"x"}`} {
				tool(n, other, "kb_get", args)
			}
			for _, args := range []string{`{"document_id":ID}`, `{"document_id":ID,"text":"x"}`, `{"document_id":ID,"tags":["a"]}`,
				`{"document_id":ID,"collection":"none"}`, `{"document_id":ID,"collection":"` + teamLabel(teamSources) + `","title":"x"}`,
				`{"document_id":ID,"collection":"` + teamLabel(teamSources+2) + `"}`, `{"document_id":ID,"tags":["collection:x"]}`} {
				tool(n, other, "kb_update_note", args)
			}
		}
		for _, method := range []string{"GET", "HEAD", "DELETE", "POST", "OPTIONS"} {
			check(user, job, "999999999", method, "/kb/api/v1/jobs/ID", "")
			check(user, session, unknown(session), method, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
				"Mcp-Session-Id", "ID", "Accept", "text/event-stream, application/json")
		}
		for _, method := range []string{"PUT", "GET", "POST", "DELETE", "HEAD", "OPTIONS"} {
			for _, body := range []string{"x", "xx", ""} {
				check(user, upload, unknown(upload), method, "/upload/ID", body, "Content-Type", "application/octet-stream")
			}
		}
		tool(upload, unknown(upload), "kb_upload_finish", `{"upload_id":"ID"}`)
		for _, data := range []string{"eA==", "eHg=", "", "!"} {
			tool(upload, unknown(upload), "kb_upload_chunk", `{"upload_id":"ID","chunk_index":0,"data":"`+data+`"}`)
			tool(upload, unknown(upload), "kb_upload_chunk", `{"upload_id":"ID","chunk_index":1,"data":"`+data+`"}`)
		}
		for label := range teamLabels {
			if label == teamSources && user == 1 {
				continue
			}
			name := teamLabel(label)
			other := strings.Repeat("n", len(name))
			for _, method := range []string{"GET", "HEAD", "DELETE", "POST", "OPTIONS", "PUT"} {
				for _, suffix := range []string{"", "/", "/x", "?sessionid=x"} {
					for _, header := range [][]string{nil, {"Accept", "text/event-stream"}, {"Origin", site.url},
						{"Origin", site.url, "Access-Control-Request-Method", "POST"}, {"Mcp-Session-Id", "x"},
						{"Mcp-Protocol-Version", "2026-07-28"}, {"Accept", "text/html"}} {
						check(user, name, other, method, "/mcp/ID"+suffix, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, header...)
					}
				}
			}
			for _, body := range []string{`{"type":"note","text":"x","tags":["collection:ID"]}`,
				`{"type":"note","text":"","tags":["collection:ID"]}`} {
				check(user, name, other, "POST", "/kb/api/v1/jobs", body)
			}
			check(user, name, other, "POST", "/kb/api/v1/search", `{"query":"common","tags":["collection:ID"]}`)
			for _, path := range []string{"/kb/api/v1/documents?tag=collection:ID", "/fess/api/v1/documents?q=common&fields.label=ID",
				"/fess/api/v1/documents?q=label:ID", "/fess/api/v1/suggest-words?q=c&label=ID", "/fess/api/v1/popular-words?label=ID",
				"/console/status?leftOut=ID", "/console/left-out?source=ID", "/console/status?leftOut=", "/mcp/../ID", "/ID", "/.well-known/oauth-protected-resource/mcp/ID"} {
				check(user, name, other, "GET", path, "")
			}
			tool(name, other, "kb_search", `{"query":"common","collection":"ID"}`)
			tool(name, other, "kb_addnote", `{"text":"x","collection":"ID"}`)
			tool(name, other, "kb_upload_start", `{"filename":"x.txt","total_size":1,"collection":"ID"}`)
			tool(name, other, "ID_search", `{"query":"common"}`)
			tool(name, other, "all_search", `{"query":"label:ID common"}`)
			tool(name, other, "all_search", `{"query":"common","facets":{"query":["label:ID"]}}`)
			tool(name, other, "all_suggest", `{"prefix":"ID"}`)
			tool(name, other, "all_read_content", `{"path":"ID/file1.txt"}`)
		}
	}
	t.Logf("%d pairs of requests", asked)
}

// teamCalls returns how many calls TestTeam sends.
func teamCalls(t *testing.T) int {
	if n, err := strconv.Atoi(os.Getenv("KNOWHOW_TEAM_CALLS")); err == nil {
		return n
	}
	if testing.Short() {
		return 1_500
	}
	return 6_000
}

// A teamRun is what the clients of TestTeam share.
type teamRun struct {
	t     *testing.T
	site  *teamSite
	marks atomic.Int64 // answers with a mark

	mu      sync.Mutex      // guards what follows
	rights  [50][]teamRight // of each user, the latest last
	uploads []string        // IDs that the server has given out
	jobs    []string
	cursors []string
	session []string
}

// share remembers what belongs to one user for the others.
func (r *teamRun) share(list *[]string, value string) {
	if value == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if *list = append(*list, value); len(*list) > 200 {
		*list = (*list)[100:]
	}
}

// any returns one of the values, of any user.
func (r *teamRun) any(random *rand.Rand, list *[]string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(*list) == 0 {
		return "none"
	}
	return (*list)[random.IntN(len(*list))]
}

// writing returns a question that changes something or is about what belongs to a user.
func (r *teamRun) writing(random *rand.Rand, label int) question {
	name, mark := teamLabel(label), teamMark(label)
	text := fmt.Sprintf("common note of %s with %sword%d", mark, mark, random.IntN(6))
	call := func(tool string, args map[string]any) question {
		return question{tool + fmt.Sprint(args), func(c *teamClient) string { return c.tool("/mcp", tool, args) }}
	}
	number := 1 + random.IntN(teamLabels*7+300)
	switch random.IntN(20) {
	case 0, 1:
		q := call("kb_addnote", map[string]any{"text": text, "title": mark + "note", "collection": name})
		return question{q.name, func(c *teamClient) string {
			answer := q.ask(c)
			r.share(&r.jobs, member(answer, "job_id"))
			return answer
		}}
	case 2:
		return call("kb_update_note", map[string]any{"document_id": number, "tags": []string{"seen"}})
	case 3:
		return call("kb_get", map[string]any{"document_id": number, "offset": random.IntN(4)})
	case 4:
		return question{"upload " + mark, func(c *teamClient) string {
			out := c.tool("/mcp", "kb_upload_start", map[string]any{"filename": mark + "up.txt", "total_size": len(text),
				"collection": name})
			id := member(out, "upload_id")
			r.share(&r.uploads, id)
			if id == "" || random.IntN(3) == 0 {
				return out
			}
			if random.IntN(2) == 0 {
				out += c.http("PUT", "/upload/"+id, text, "Content-Type", "application/octet-stream")
			} else {
				out += c.tool("/mcp", "kb_upload_chunk", map[string]any{"upload_id": id, "chunk_index": 0,
					"data": base64.StdEncoding.EncodeToString([]byte(text))})
			}
			finished := c.tool("/mcp", "kb_upload_finish", map[string]any{"upload_id": id})
			r.share(&r.jobs, member(finished, "job_id"))
			return out + finished
		}}
	case 5:
		id := r.any(random, &r.uploads)
		return call("kb_upload_finish", map[string]any{"upload_id": id})
	case 6:
		id := r.any(random, &r.uploads)
		return question{"PUT " + id, func(c *teamClient) string {
			return c.http("PUT", "/upload/"+id, "x", "Content-Type", "application/octet-stream")
		}}
	case 7:
		id := r.any(random, &r.jobs)
		return question{"job " + id, func(c *teamClient) string { return c.http("GET", "/kb/api/v1/jobs/"+id, "") }}
	case 8:
		return call("kb_jobs", map[string]any{"limit": 100})
	case 9:
		return question{"jobs", func(c *teamClient) string { return c.http("GET", "/kb/api/v1/jobs?limit=1000", "") }}
	case 10:
		return question{"status", func(c *teamClient) string { return c.http("GET", "/kb/api/v1/status", "") }}
	case 11:
		return call("kb_status", map[string]any{})
	case 12:
		return question{"documents", func(c *teamClient) string { return c.http("GET", "/kb/api/v1/documents?limit=1000", "") }}
	case 13:
		return question{"document", func(c *teamClient) string {
			return c.http("GET", fmt.Sprint("/kb/api/v1/documents/", number), "")
		}}
	case 14:
		body, _ := json.Marshal(map[string]any{"type": "note", "text": text, "title": mark, "tags": []string{"collection:" + name}})
		return question{"note " + mark, func(c *teamClient) string { return c.http("POST", "/kb/api/v1/jobs", string(body)) }}
	case 15:
		return question{"cursor", func(c *teamClient) string {
			out := c.tool("/mcp", "all_read_content", map[string]any{"maxChars": 20,
				"docId": document.IDOf(name, fmt.Sprintf("%s/file%d.txt", mark, random.IntN(6)))})
			r.share(&r.cursors, member(out, "nextCursor"))
			return out
		}}
	case 16:
		cursor := r.any(random, &r.cursors)
		return question{mark + "cursor", func(c *teamClient) string {
			return c.tool("/mcp", "all_read_content", map[string]any{"cursor": cursor,
				"docId": document.IDOf(name, fmt.Sprintf("%s/file%d.txt", mark, random.IntN(6)))})
		}}
	case 17:
		id := r.any(random, &r.session)
		return question{"session", func(c *teamClient) string {
			c.mu.Lock()
			own := c.sessions["/mcp"] == id
			c.mu.Unlock()
			if own {
				return ""
			}
			method := []string{"POST", "GET", "DELETE"}[random.IntN(3)]
			a := c.site.send(c.user, method, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "Mcp-Session-Id", id,
				"Accept", "text/event-stream, application/json")
			c.count("/mcp", method)
			if a.status != http.StatusNotFound {
				r.t.Errorf("%s in the session of another user = %d %s", method, a.status, a.body)
			}
			return a.body
		}}
	case 18:
		return question{"/", func(c *teamClient) string {
			a := c.site.send(c.user, "GET", "/"+name, "")
			c.count("/"+name, "GET")
			return strings.ReplaceAll(a.body, name, "")
		}}
	default:
		return question{"DELETE " + mark, func(c *teamClient) string { // a number that nothing has
			return c.http("DELETE", fmt.Sprint("/kb/api/v1/documents/", 1_000_000+number), "")
		}}
	}
}

// TestTeam lets 50 users send mixed calls at once, while the rights of some change.
// KNOWHOW_TEAM_CALLS is the number of calls.
func TestTeam(t *testing.T) {
	t.Parallel()
	const changing = 40 // the first user whose rights change
	list := make([]access.User, 50)
	r := &teamRun{t: t}
	for i := range list {
		rights := teamRights(i, false)
		list[i] = accessUser(i, rights)
		r.rights[i] = []teamRight{rights}
	}
	r.site = newTeamSite(t, func(int) bool { return true }, allNotes, list)
	calls := teamCalls(t)
	clients := make([]*teamClient, 50)
	var working, changes sync.WaitGroup
	done := make(chan struct{})
	began := time.Now()
	for i := range clients {
		c := newTeamClient(r.site, i)
		clients[i] = c
		working.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 99))
			for range calls / len(clients) {
				r.one(c, random)
			}
		})
	}
	changes.Go(func() {
		random := rand.New(rand.NewPCG(3, 3))
		for {
			select {
			case <-done:
				return
			case <-time.After(50 * time.Millisecond):
			}
			i := changing + random.IntN(50-changing)
			after := teamRights(i, random.IntN(2) == 0)
			r.mu.Lock()
			both := r.rights[i][len(r.rights[i])-1].plus(after)
			r.rights[i] = append(r.rights[i], both) // either may be in force now
			r.mu.Unlock()
			list[i] = accessUser(i, after)
			r.site.grant(list)
			r.mu.Lock()
			r.rights[i] = append(r.rights[i], after)
			r.mu.Unlock()
		}
	})
	working.Wait()
	close(done)
	changes.Wait()
	t.Logf("%d questions in %v; %d answers have a mark", calls, time.Since(began).Round(time.Millisecond), r.marks.Load())
	if r.marks.Load() < int64(calls/5) {
		t.Errorf("%d answers have a mark: the test has no teeth", r.marks.Load())
	}
	r.account(clients, changing)
}

// one asks one question of a user and checks the answer.
func (r *teamRun) one(c *teamClient, random *rand.Rand) {
	label := random.IntN(teamLabels)
	q := reading(random, label)
	if random.IntN(3) == 0 {
		q = r.writing(random, label)
	}
	r.mu.Lock()
	before := len(r.rights[c.user]) - 1
	r.mu.Unlock()
	answer := q.ask(c)
	var rights teamRight // all that were in force in the meantime
	r.mu.Lock()
	for _, had := range r.rights[c.user][before:] {
		rights = rights.plus(had)
	}
	r.mu.Unlock()
	c.mu.Lock()
	session := c.sessions["/mcp"]
	c.mu.Unlock()
	r.share(&r.session, session)
	if out := hidden(q.name, answer, rights.sees()); out != nil && !own(q.name, c.user, out) {
		r.t.Errorf("%s, who may read %v, asks %s and receives %v: %s", teamUser(c.user), rights.read, q.name, out, answer[:min(2000, len(answer))])
	}
	if marks.MatchString(answer) {
		r.marks.Add(1)
	}
}

// own reports whether marks are those of files that the user has uploaded when the user
// might write to their collections: jobs have the names of files, and errors of uploads
// name the collection that the user has named.
func own(name string, user int, found []string) bool {
	if !strings.Contains(name, "job") && !strings.Contains(name, "upload") && !strings.HasPrefix(name, "PUT ") {
		return false
	}
	c := &access.Caller{Rights: access.Rights{Write: teamRights(user, false).plus(teamRights(user, true)).write}}
	return !slices.ContainsFunc(found, func(mark string) bool {
		i, _ := strconv.Atoi(marks.FindStringSubmatch(mark)[1])
		return !c.MayWrite(teamLabel(i))
	})
}

// account checks that the audit file has one line for each call, and only documents that
// its user may read, or has written.
func (r *teamRun) account(clients []*teamClient, changing int) {
	t := r.t
	labels := map[string]string{} // by ID of a document
	last := int64(0)
	for n := int64(1); n < last+1000; n++ {
		if record, err := r.site.folder.Index.Record(t.Context(), n); err == nil {
			labels[record.ID], last = record.Label, n
		}
	}
	r.site.stop()
	data, err := os.ReadFile(r.site.log)
	if err != nil {
		t.Fatal(err)
	}
	want, got, documents := map[string]int{}, map[string]int{}, 0
	for _, c := range clients {
		for key, n := range c.sent {
			want[key] += n
		}
	}
	var rights []access.Caller
	for i := range clients {
		all := teamRights(i, false)
		if i >= changing {
			all = all.plus(teamRights(i, true))
		}
		rights = append(rights, access.Caller{Rights: access.Rights{Read: all.read, Write: all.write}})
	}
	for text := range bytes.Lines(data) {
		var line struct {
			User, Path, Tool string
			Docs             []string
		}
		if err := json.Unmarshal(text, &line); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		got[line.User+" "+line.Path+" "+line.Tool]++
		i, err := strconv.Atoi(strings.TrimPrefix(line.User, "user"))
		if err != nil {
			t.Errorf("a line without a user: %s", text)
			continue
		}
		for _, id := range line.Docs {
			documents++
			label := labels[id]
			if label != "" && !rights[i].MayRead(label) && !rights[i].MayWrite(label) {
				t.Errorf("%s has received a document of %s: %s", line.User, label, text)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls in the audit file: (-sent +recorded)\n%s", diff)
	}
	t.Logf("the audit file has %d bytes and names %d documents", len(data), documents)
}

// BenchmarkSearch measures a search over HTTP, on a server without users and on one with
// users and an audit file.
func BenchmarkSearch(b *testing.B) {
	for _, team := range []bool{false, true} {
		b.Run(map[bool]string{false: "open", true: "team"}[team], func(b *testing.B) {
			var list []access.User
			for i := range 50 {
				list = append(list, accessUser(i, teamRight{[]string{teamLabel(0), teamLabel(1)}, nil}))
			}
			if !team {
				list = nil
			}
			c := newTeamClient(newTeamSite(b, func(i int) bool { return i < 2 }, nil, list), 0)
			c.session("/mcp")
			for b.Loop() {
				if got := c.tool("/mcp", "all_search", map[string]any{"query": "alpha word"}); !strings.Contains(got, "doc_id") {
					b.Fatal(got)
				}
			}
		})
	}
}
