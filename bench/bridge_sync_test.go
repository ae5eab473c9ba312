package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The fake servers of a sync, which take 50 to 400 ms to start.
const (
	fakeServers  = 10
	toolsAServer = 50
	quickest     = 50 * time.Millisecond
	slowest      = 400 * time.Millisecond
)

// fakeArgument makes the test program an MCP server; see TestMain.
const fakeArgument = "serve-mcp"

// TestMain lets the benchmarks run the test program as an MCP server.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == fakeArgument {
		if err := serveFake(os.Args[2], os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveFake runs an MCP server over stdio that takes delay to start and offers
// the tools in a file.
func serveFake(delay, file string) error {
	wait, err := time.ParseDuration(delay)
	if err != nil {
		return err
	}
	tools, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	<-time.After(wait)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
			Params struct{ ProtocolVersion string }
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			return err
		}
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch {
		case m.ID == nil:
			continue
		case m.Method == "initialize":
			answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"fake","version":"1"}}`
		case m.Method == "tools/list":
			answer = `"result":{"tools":` + string(tools) + `}`
		}
		if _, err := fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", m.ID, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

// A fakeFleet is the settings of the fake servers.
type fakeFleet struct {
	settings string   // file
	slowest  []string // command of the slowest one
	size     int      // bytes of all tools
}

// newFleet writes the settings and the tools of the fake servers. Their tools
// are those of the recorded servers under new names.
func newFleet(b *testing.B) *fakeFleet {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	var tools []json.RawMessage
	for _, s := range recordedServers(b) {
		tools = append(tools, s.raw...)
	}
	dir, f, servers := b.TempDir(), &fakeFleet{}, map[string]any{}
	for i := range fakeServers {
		var own []json.RawMessage
		for j := range toolsAServer {
			n := i*toolsAServer + j
			own = append(own, renamed(b, tools[n%len(tools)], n))
		}
		file := writeJSON(b, filepath.Join(dir, fmt.Sprintf("tools%d.json", i)), own)
		delay := quickest + time.Duration(i)*(slowest-quickest)/(fakeServers-1)
		args := []string{fakeArgument, delay.String(), file}
		servers[fmt.Sprintf("server%d", i)] = map[string]any{"command": self, "args": args}
		f.slowest = append([]string{self}, args...)
		for _, t := range own {
			f.size += len(t)
		}
	}
	f.settings = writeJSON(b, filepath.Join(dir, "mcp_settings.json"), map[string]any{"mcpServers": servers})
	return f
}

// renamed returns a tool with a number appended to its name.
func renamed(b *testing.B, tool json.RawMessage, n int) json.RawMessage {
	b.Helper()
	var t struct{ Name string }
	if err := json.Unmarshal(tool, &t); err != nil {
		b.Fatal(err)
	}
	before := fmt.Sprintf(`"name":%q`, t.Name)
	after := fmt.Sprintf(`"name":"%s_%d"`, t.Name, n)
	if !bytes.Contains(tool, []byte(before)) {
		b.Fatalf("no %s in a recorded tool", before)
	}
	return bytes.Replace(tool, []byte(before), []byte(after), 1)
}

// alone returns the time from the start of the slowest server to the last byte
// of its tools, without a bridge.
func (f *fakeFleet) alone(b *testing.B) time.Duration {
	b.Helper()
	cmd := exec.Command(f.slowest[0], f.slowest[1:]...)
	cmd.Stdin = bytes.NewReader(slices.Concat(request(b, 1, "initialize", hello()), request(b, 2, "tools/list", nil)))
	began := time.Now()
	out, err := cmd.Output()
	took := time.Since(began)
	if err != nil || bytes.Count(out, []byte("inputSchema")) < toolsAServer {
		b.Fatalf("calling the slowest server: %v, %.300s", err, out)
	}
	return took
}

// sync runs the command sync, whose output must contain want.
func (f *fakeFleet) sync(b *testing.B, dir, want string) time.Duration {
	b.Helper()
	began := time.Now()
	out, err := command(dir, program(b), "sync", "--mcp-settings", f.settings)()
	took := time.Since(began)
	if err != nil || !strings.Contains(out, want) {
		b.Fatalf("sync: %v; want %q in\n%s", err, want, out)
	}
	return took
}

// start runs the command start until it listens. It returns how long that took,
// and the process's memory at that moment and its maximum, in MB; 0 if unknown.
func (f *fakeFleet) start(b *testing.B, dir string) (took time.Duration, now, most float64) {
	b.Helper()
	began := time.Now()
	r, err := launch(b, dir, 0, listening, program(b),
		"start", "--mcp-settings", f.settings, "--port", "0", "--log-level", "ERROR")
	took = time.Since(began)
	if err != nil {
		b.Fatal(err)
	}
	defer r.end()
	if now = residentSet(b, []int{r.pid}); now > 0 {
		most = memoryOf(b, r.pid, "VmHWM")
	}
	return took, now, most
}

// A syncRound is the measurements of one round.
type syncRound struct {
	alone, first, again, startFirst, startAgain time.Duration
	firstMost, againMost                        float64
}

func (f *fakeFleet) round(b *testing.B) (s syncRound) {
	b.Helper()
	dir := b.TempDir()
	const n = fakeServers * toolsAServer
	s.alone = f.alone(b)
	s.first = f.sync(b, dir, fmt.Sprintf("Generated %d skills from %d servers\n", n, fakeServers))
	s.again = f.sync(b, dir, fmt.Sprintf("Generated 0 skills from %d servers (%d unchanged)", fakeServers, n))
	s.startAgain, _, s.againMost = f.start(b, dir)
	s.startFirst, _, s.firstMost = f.start(b, b.TempDir())
	return s
}

// BenchmarkBridgeSync measures how long it takes to generate skills of 500
// tools, and how long if nothing has changed. The first sub-benchmark takes all
// measurements, in -benchtime rounds.
func BenchmarkBridgeSync(b *testing.B) {
	f := newFleet(b)
	var rounds []syncRound
	for _, row := range []struct {
		name string
		took func(syncRound) time.Duration
		most func(syncRound) float64
	}{
		{"slowest-server-alone", func(s syncRound) time.Duration { return s.alone }, nil},
		{"first", func(s syncRound) time.Duration { return s.first }, nil},
		{"unchanged", func(s syncRound) time.Duration { return s.again }, nil},
		{"start-first", func(s syncRound) time.Duration { return s.startFirst }, func(s syncRound) float64 { return s.firstMost }},
		{"start-unchanged", func(s syncRound) time.Duration { return s.startAgain }, func(s syncRound) float64 { return s.againMost }},
	} {
		b.Run(row.name, func(b *testing.B) {
			measured := rounds != nil
			for b.Loop() {
				if !measured {
					rounds = append(rounds, f.round(b))
				}
			}
			b.ReportMetric(0, "ns/op")
			took := sortedBy(rounds, func(s syncRound) float64 { return ms(row.took(s)) })
			b.ReportMetric(took[0], "best-ms")
			b.ReportMetric(median(took), "median-ms")
			switch row.name {
			case "slowest-server-alone":
				b.ReportMetric(float64(f.size)/1000, "all-tools-KB")
			case "first", "unchanged", "start-first":
				added := sortedBy(rounds, func(s syncRound) float64 { return ms(row.took(s) - s.alone) })
				b.ReportMetric(added[0], "added-best-ms")
				b.ReportMetric(median(added), "added-median-ms")
			}
			if row.most != nil {
				if most := sortedBy(rounds, row.most); most[0] > 0 {
					b.ReportMetric(most[len(most)-1], "most-MB")
				}
			}
		})
	}
}
