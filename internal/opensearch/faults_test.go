package opensearch_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/kb"
)

// The environment variables of .ci/real-cluster.
const (
	clusterVariable = "KNOWHOW_TEST_CLUSTER"
	nodesVariable   = "KNOWHOW_TEST_OPENSEARCH_NODES"
)

// TestFaults checks that four engines lose and duplicate nothing while the nodes
// of their cluster fail one after another, and that searches meanwhile succeed or
// fail with an error that can be retried. It logs how long clients noticed each
// fault.
func TestFaults(t *testing.T) {
	c := &cluster{t: t, control: os.Getenv(clusterVariable), nodes: strings.Split(os.Getenv(nodesVariable), ",")}
	if c.control == "" {
		t.Skip("needs a cluster with faults: run .ci/real-cluster go test ./internal/opensearch -run TestFaults -v -timeout 30m")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, "knowhow")
	build := exec.Command("go", "build", "-o", program, "github.com/knowhow-mcp/knowhow/cmd/knowhow")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	balancer := newBalancer(t, c.nodes)
	prefix := fmt.Sprintf("faults%d", time.Now().UnixMilli())
	// Two engines use a load balancer, and two a name with the addresses of all
	// nodes.
	stores := []string{"opensearch+http://" + balancer.address + "/" + prefix, "opensearch+http://opensearch:9201/" +
		prefix}
	l := &load{t: t, done: make(chan struct{}), shared: map[string]bool{}}
	for i := range 4 {
		l.engines = append(l.engines, startEngine(t, program, filepath.Join(dir, fmt.Sprint("data", i)), i,
			stores[i%2]))
	}
	for _, e := range l.engines {
		c.until(time.Minute, "the engine answers", func(ctx context.Context) bool {
			status, _ := request(ctx, http.MethodGet, e.url+"/jobs?limit=1", "", nil, nil)
			return status == http.StatusOK
		})
	}
	l.start()
	stop := sync.OnceFunc(func() { close(l.done); l.working.Wait() })
	defer stop()

	const long, short = 25 * time.Second, 10 * time.Second // a node is removed after about 12 s
	index := prefix + "-documents-1"
	// measure runs a fault, waits until the cluster is green again and the queues
	// are empty, and logs what clients noticed.
	measure := func(name string, fault func()) {
		t.Run(name, func(t *testing.T) {
			c.t = t
			from := time.Now()
			fault()
			c.green()
			green := time.Now()
			l.drained(c)
			l.report(t, from, green, time.Now())
		})
		c.t = t
	}
	measure("no fault", func() { time.Sleep(short) })
	measure("kill manager", func() {
		n := c.manager()
		c.fault(n, "kill")
		time.Sleep(short)
		c.fault(n, "start")
	})
	measure("kill primary", func() {
		n := c.primary(index)
		c.fault(n, "kill")
		time.Sleep(short)
		c.fault(n, "start")
	})
	measure("isolate manager", func() {
		n := c.manager()
		c.fault(n, "isolate")
		time.Sleep(long)
		c.fault(n, "heal")
	})
	measure("unplug primary", func() {
		n := c.primary(index)
		c.fault(n, "unplug")
		time.Sleep(long)
		c.fault(n, "heal")
	})
	full := func(nodes ...int) {
		for _, n := range nodes {
			c.fault(n, "fill")
		}
		from := time.Now()
		c.until(time.Minute, "an index is blocked", func(ctx context.Context) bool {
			blocked, known := c.blocked(ctx, prefix)
			return blocked && known
		})
		c.t.Logf("the first block came after %v", time.Since(from).Round(time.Second))
		time.Sleep(short)
		for _, n := range nodes {
			c.fault(n, "free")
		}
		from = time.Now()
		c.until(2*time.Minute, "no index is blocked", func(ctx context.Context) bool {
			blocked, known := c.blocked(ctx, prefix)
			return !blocked && known
		})
		c.t.Logf("the last block was removed %v after space was free", time.Since(from).Round(time.Second))
	}
	measure("full disk of primary", func() { full(c.primary(index)) })
	measure("full disks", func() { full(1, 2, 3) })
	measure("rolling restart", func() {
		for n := range c.nodes {
			c.fault(n+1, "stop")
			c.fault(n+1, "start")
			c.green()
		}
	})
	stop()
	l.drained(c)
	l.check()
}

// A cluster is the cluster of .ci/real-cluster. Its nodes are numbered from 1.
type cluster struct {
	t       *testing.T
	control string
	nodes   []string
}

// fault makes or ends a fault of a node.
func (c *cluster) fault(node int, name string) {
	c.t.Helper()
	status, body := request(context.Background(), http.MethodPost, fmt.Sprintf("%s/%d/%s", c.control, node, name), "",
		nil,
		nil)
	if status != http.StatusOK {
		c.t.Fatalf("%s of node %d: status %d: %s", name, node, status, body)
	}
}

// until waits until so returns true.
func (c *cluster) until(limit time.Duration, what string, so func(context.Context) bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	for !so(ctx) {
		select {
		case <-ctx.Done():
			c.t.Fatalf("not within %v: %s", limit, what)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// get decodes what the first node that succeeds answers.
func (c *cluster) get(ctx context.Context, path string, out any) bool {
	return slices.ContainsFunc(c.nodes, func(node string) bool { return c.getFrom(ctx, node, path, out) })
}

// getFrom decodes what a node answers.
func (c *cluster) getFrom(ctx context.Context, node, path string, out any) bool {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, _ := request(ctx, http.MethodGet, node+path, "", nil, out)
	return status == http.StatusOK
}

// green waits until each node reports that all nodes are there and all copies of
// all shards. After an election, the others still count a node that has gone.
func (c *cluster) green() {
	c.t.Helper()
	c.until(5*time.Minute, "the cluster is green", func(ctx context.Context) bool {
		for _, node := range c.nodes {
			var health struct {
				Status string `json:"status"`
				Nodes  int    `json:"number_of_nodes"`
				Moving int    `json:"relocating_shards"`
			}
			if !c.getFrom(ctx, node, "/_cluster/health?cluster_manager_timeout=2s", &health) ||
				health.Status != "green" ||
				health.Nodes != len(c.nodes) || health.Moving > 0 {
				return false
			}
		}
		return true
	})
}

// manager returns the elected cluster manager.
func (c *cluster) manager() int {
	c.t.Helper()
	var rows []struct{ IP string }
	if !c.get(c.t.Context(), "/_cat/cluster_manager?format=json", &rows) || len(rows) != 1 {
		c.t.Fatalf("cluster managers: %v", rows)
	}
	return c.number(rows[0].IP)
}

// primary returns the node with the primary shard of an index.
func (c *cluster) primary(index string) int {
	c.t.Helper()
	var rows []struct{ PriRep, IP string }
	if !c.get(c.t.Context(), "/_cat/shards/"+index+"?format=json&h=prirep,ip", &rows) {
		c.t.Fatal("the shards cannot be listed")
	}
	for _, r := range rows {
		if r.PriRep == "p" {
			return c.number(r.IP)
		}
	}
	c.t.Fatalf("no primary shard: %v", rows)
	return 0
}

func (c *cluster) number(ip string) int {
	return 1 + slices.IndexFunc(c.nodes, func(url string) bool { return strings.Contains(url, "/"+ip+":") })
}

// blocked reports whether an index of a store is read-only because of a full
// disk, if that is known.
func (c *cluster) blocked(ctx context.Context, prefix string) (blocked, known bool) {
	var settings map[string]struct {
		Settings map[string]string `json:"settings"`
	}
	known = c.get(ctx, "/"+prefix+"-*/_settings/index.blocks.read_only_allow_delete?flat_settings=true", &settings)
	for _, s := range settings {
		if s.Settings["index.blocks.read_only_allow_delete"] == "true" {
			return true, known
		}
	}
	return false, known
}

var plain = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}

// request returns the status of the answer, or 0, and its body or the error. A
// body of status 200 or 202 is decoded into out unless that is nil.
func request(ctx context.Context, method, url, kind string, body []byte, out any) (int, string) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return 0, err.Error()
	}
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	resp, err := plain.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && out != nil && (resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusAccepted) {
		err = json.Unmarshal(answer, out)
	}
	if err != nil {
		return 0, err.Error() + ": " + string(answer)
	}
	return resp.StatusCode, string(answer)
}

// A balancer forwards connections to healthy nodes in turn, and to all nodes if
// none is healthy.
type balancer struct {
	address string
	nodes   []string // addresses
	mu      sync.Mutex
	healthy []string            // of nodes
	open    map[net.Conn]string // connections to nodes, with their addresses
	next    int
}

// newBalancer returns a balancer that ends with the test. A node is healthy if it
// knows a cluster manager.
func newBalancer(t *testing.T, nodes []string) *balancer {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{address: listener.Addr().String(), open: map[net.Conn]string{}}
	for _, node := range nodes {
		b.nodes = append(b.nodes, strings.TrimPrefix(node, "http://"))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var working sync.WaitGroup
	for _, node := range b.nodes {
		working.Go(func() {
			for ctx.Err() == nil {
				limited, cancel := context.WithTimeout(ctx, 2*time.Second)
				status, _ := request(limited, http.MethodGet,
					"http://"+node+"/_cluster/health?cluster_manager_timeout=1s&timeout=1s", "", nil, nil)
				cancel()
				b.set(node, status == http.StatusOK)
				select {
				case <-ctx.Done():
				case <-time.After(time.Second):
				}
			}
		})
	}
	working.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			working.Go(func() { b.forward(conn) })
		}
	})
	t.Cleanup(func() {
		cancel()
		listener.Close()
		for _, node := range b.nodes {
			b.set(node, false)
		}
		working.Wait()
	})
	return b
}

// set records whether a node is healthy, and ends the connections to one that is
// not.
func (b *balancer) set(address string, healthy bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.healthy = slices.DeleteFunc(b.healthy, func(a string) bool { return a == address })
	if healthy {
		b.healthy = append(b.healthy, address)
		slices.Sort(b.healthy)
		return
	}
	for conn, a := range b.open {
		if a == address {
			conn.Close()
		}
	}
}

// forward copies between a client and a healthy node until one of them ends.
func (b *balancer) forward(client net.Conn) {
	defer client.Close()
	b.mu.Lock()
	b.next++
	nodes := b.nodes
	if len(b.healthy) > 0 {
		nodes = b.healthy
	}
	address := nodes[b.next%len(nodes)]
	b.mu.Unlock()
	node, err := net.DialTimeout("tcp", address, 2*time.Second)
	if err != nil {
		return
	}
	b.mu.Lock()
	b.open[node] = address
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.open, node)
	}()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		io.Copy(node, client)
		node.Close()
	}()
	io.Copy(client, node)
	node.Close()
	client.Close()
	<-ended
}

// An engine is a process of "knowhow engine".
type engine struct {
	url string // of its API
	n   int
}

// startEngine starts an engine that ends with the test.
func startEngine(t *testing.T, program, dir string, n int, store string) *engine {
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	address := fmt.Sprintf("127.0.0.1:%d", 9250+n)
	model := "none" // one engine makes the vectors, because each would make all of them
	if n == 0 {
		model = "builtin"
	}
	cmd := exec.Command(program, "engine", "--addr", address, "--data", dir, "--store", store, "--embedder", model)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
		defer kill.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("engine %d: %v", n, err)
		}
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		if t.Failed() {
			t.Logf("log of engine %d:\n%s", n, text[:min(len(text), 20_000)])
		}
	})
	return &engine{url: "http://" + address + "/api/v1", n: n}
}

// A load is clients that write and read.
type load struct {
	t       *testing.T
	engines []*engine
	done    chan struct{} // closed: end
	working sync.WaitGroup

	mu       sync.Mutex
	entries  []*entry
	shared   map[string]bool // source paths of files that several engines add
	searches []madeSearch
	adds     []add
}

// An entry is a document that an engine has accepted.
type entry struct {
	engine   *engine
	job      int64
	word     string // which no other document has; "" if the document may be replaced
	path     string // the source path of a file
	accepted time.Time
	ended    time.Time // when its job was seen done; zero if it was not yet
}

// A madeSearch is a search that was made.
type madeSearch struct {
	at     time.Time
	took   time.Duration
	status int // 0: the engine did not answer
	found  bool
}

// An add is a request to add a document.
type add struct {
	at     time.Time
	took   time.Duration
	status int
}

// word returns a word that differs for each number.
func word(n int) string {
	const letters = "bdfgklmnprtvz"
	w := "qu"
	for range 5 {
		w += string(letters[n%len(letters)]) + string("aou"[n%3])
		n /= len(letters)
	}
	return w + "x"
}

// maxOpen is how many documents of an engine may wait, so that a slow machine
// does not get more and more to do.
const maxOpen = 12

// start starts the clients.
func (l *load) start() {
	var number atomic.Int64
	number.Store(1)
	for _, e := range l.engines {
		l.working.Go(func() {
			for l.pause(time.Second) {
				if len(l.open(e)) > maxOpen {
					continue
				}
				l.add(e, int(number.Add(1)))
			}
		})
		l.working.Go(func() {
			for l.pause(200 * time.Millisecond) {
				l.follow(e)
			}
		})
		l.working.Go(func() {
			for l.pause(500 * time.Millisecond) {
				l.mu.Lock()
				var known []*entry
				for _, x := range l.entries {
					if x.word != "" && !x.ended.IsZero() {
						known = append(known, x)
					}
				}
				l.mu.Unlock()
				if len(known) > 0 {
					l.search(e, known[rand.IntN(len(known))], false)
				}
			}
		})
	}
}

// pause waits and reports whether the clients go on.
func (l *load) pause(d time.Duration) bool {
	select {
	case <-l.done:
		return false
	case <-time.After(d):
		return true
	}
}

// add adds a note, a file, or a version of a file that all engines add.
func (l *load) add(e *engine, n int) {
	x := &entry{engine: e, word: word(n)}
	kind, body := "application/json", []byte(nil)
	file := func(path, text string) {
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		part, _ := w.CreateFormFile("file", path) // writes to a buffer do not fail
		io.WriteString(part, text)
		w.WriteField("tags", "collection:files")
		w.Close()
		kind, body, x.path = w.FormDataContentType(), b.Bytes(), path
	}
	switch {
	case n%10 == 0:
		x.word = ""
		file(fmt.Sprintf("shared%d.md", n%7), fmt.Sprintf("# Version %d\n\nWritten by engine %d.", n, e.n))
	case n%2 == 0:
		file(fmt.Sprintf("file%d.md", n), fmt.Sprintf("# File %d\n\nThe word of this file is %s.\n\n## Further\n\n%s",
			n,
			x.word, strings.Repeat("The walrus sleeps on the ice. ", n%200)))
	default:
		body, _ = json.Marshal(map[string]any{"type": "note", "text": "The word of this note is " + x.word + ".",
			"tags": []string{"collection:notes"}})
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var answer struct {
		ID int64 `json:"job_id"`
	}
	from := time.Now()
	status, text := request(ctx, http.MethodPost, e.url+"/jobs", kind, body, &answer)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adds = append(l.adds, add{from, time.Since(from), status})
	if status != http.StatusAccepted {
		l.t.Errorf("adding a document: status %d: %s", status, text)
		return
	}
	x.job, x.accepted = answer.ID, from
	if x.word == "" {
		l.shared[x.path] = true
	}
	l.entries = append(l.entries, x)
}

// follow records which jobs of an engine are done.
func (l *load) follow(e *engine) {
	for _, x := range l.open(e) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		var job kb.Job
		status, _ := request(ctx, http.MethodGet, fmt.Sprintf("%s/jobs/%d", e.url, x.job), "", nil, &job)
		cancel()
		if status != http.StatusOK || !job.Ended() {
			return // the later ones are not done either, or soon seen
		}
		if job.Status != kb.Done || job.DocumentID == nil {
			l.t.Errorf("job %d of engine %d, accepted %s: %+v", x.job, e.n, x.accepted.Format(time.TimeOnly), job)
		}
		l.mu.Lock()
		x.ended = time.Now()
		l.mu.Unlock()
	}
}

// open returns the entries of an engine whose jobs are not known to be done. nil
// means all engines.
func (l *load) open(e *engine) (open []*entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.entries {
		if x.ended.IsZero() && (e == nil || x.engine == e) {
			open = append(open, x)
		}
	}
	return open
}

// search searches for an entry and reports whether it was found. Half of the
// searches before the final ones are also by meaning, which ranks other documents
// first until the entry has a vector.
func (l *load) search(e *engine, x *entry, final bool) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	words := rand.IntN(2) == 0 || final
	body, _ := json.Marshal(map[string]any{"query": x.word, "top": 3, "fts_only": words})
	var answer kb.SearchResult
	from := time.Now()
	status, text := request(ctx, http.MethodPost, e.url+"/search", "application/json", body, &answer)
	found := !words || slices.ContainsFunc(answer.Results, func(r kb.Result) bool {
		return strings.Contains(r.Text,
			x.word)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.searches = append(l.searches, madeSearch{from, time.Since(from), status, found})
	switch status {
	case http.StatusOK, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
	default:
		l.t.Errorf("%s: searching: status %d: %s", from.Format(time.TimeOnly), status, text)
	}
	return found
}

// drained waits until all jobs that were accepted before are done.
func (l *load) drained(c *cluster) {
	l.t.Helper()
	before := l.open(nil)
	c.until(5*time.Minute, "all jobs are done", func(context.Context) bool {
		select {
		case <-l.done: // nothing else follows the jobs
			for _, e := range l.engines {
				l.follow(e)
			}
		default:
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		return !slices.ContainsFunc(before, func(x *entry) bool { return x.ended.IsZero() })
	})
}

// report logs what clients noticed from a time on.
func (l *load) report(t *testing.T, from, green, to time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	statuses, missed := map[int]int{}, 0
	var first, last time.Time // failures
	var slowest time.Duration
	for _, s := range l.searches {
		if s.at.Before(from) {
			continue
		}
		statuses[s.status]++
		slowest = max(slowest, s.took)
		if s.status == http.StatusOK && !s.found {
			missed++
		}
		if s.status != http.StatusOK {
			if first.IsZero() {
				first = s.at
			}
			if end := s.at.Add(s.took); end.After(last) {
				last = end
			}
		}
	}
	accepted, wait, slowAdd := 0, time.Duration(0), time.Duration(0)
	for _, a := range l.adds {
		if !a.at.Before(from) {
			slowAdd = max(slowAdd, a.took)
		}
	}
	for _, x := range l.entries {
		if !x.accepted.Before(from) && !x.ended.IsZero() {
			accepted++
			wait = max(wait, x.ended.Sub(x.accepted))
		}
	}
	var counts []string
	for _, status := range slices.Sorted(maps.Keys(statuses)) {
		counts = append(counts, fmt.Sprintf("%d×%d", statuses[status], status))
	}
	t.Logf("green after %v, queues empty after %v\n  searches %s, failed during %v, slowest %v, %d found nothing\n  %d documents accepted, slowest answer %v, longest wait until done %v",
		green.Sub(from).Round(time.Second), to.Sub(from).Round(time.Second), strings.Join(counts, " "),
		last.Sub(first).Round(100*time.Millisecond),
		slowest.Round(100*time.Millisecond), missed, accepted, slowAdd.Round(time.Millisecond),
		wait.Round(100*time.Millisecond))
}

// check checks that everything that was accepted is stored once and is found.
func (l *load) check() {
	var list []kb.Document
	for {
		var page kb.DocumentList
		status, text := request(context.Background(), http.MethodGet,
			fmt.Sprintf("%s/documents?limit=100&offset=%d", l.engines[0].url, len(list)), "", nil, &page)
		if status != http.StatusOK {
			l.t.Fatalf("listing documents: status %d: %s", status, text)
		}
		if list = append(list, page.Documents...); len(page.Documents) == 0 {
			break
		}
	}
	want := len(l.shared)
	for _, x := range l.entries {
		if x.word != "" {
			want++
		}
	}
	numbers, paths := map[int64]bool{}, map[string]bool{}
	for _, d := range list {
		if numbers[d.ID] {
			l.t.Errorf("document_id %d is there twice", d.ID)
		}
		numbers[d.ID] = true
		if d.SourcePath != "" && paths[d.SourcePath] {
			l.t.Errorf("the source path %s is there twice", d.SourcePath)
		}
		paths[d.SourcePath] = true
		collections := 0
		for _, tag := range d.Tags {
			if strings.HasPrefix(tag, "collection:") {
				collections++
			}
		}
		if collections != 1 {
			l.t.Errorf("document %d has the tags %q, want one collection", d.ID, d.Tags)
		}
	}
	if len(list) != want {
		l.t.Errorf("%d documents are stored, want %d", len(list), want)
	}
	var checking sync.WaitGroup
	for i, e := range l.engines {
		checking.Go(func() {
			for n := i; n < len(l.entries); n += len(l.engines) {
				if x := l.entries[n]; x.word != "" && !l.search(e, x, true) {
					l.t.Errorf("job %d of engine %d, accepted %s, done %s: %s is not found", x.job, x.engine.n,
						x.accepted.Format(time.TimeOnly), x.ended.Format(time.TimeOnly), cmp.Or(x.path, "the note"))
				}
			}
			for n := i; n < len(list); n += len(l.engines) {
				if status, text := request(context.Background(), http.MethodGet,
					fmt.Sprintf("%s/documents/%d", e.url, list[n].ID),
					"", nil, nil); status != http.StatusOK {
					l.t.Errorf("reading document %d: status %d: %s", list[n].ID, status, text)
				}
			}
		})
	}
	checking.Wait()
	l.t.Logf("%d jobs were accepted, %d documents are stored and found", len(l.entries), len(list))
}
