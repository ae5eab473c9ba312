package mcpclient

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/mcpsettings"
)

// TestMain makes the test binary a fake MCP server when it is started as one.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("KNOWHOW_FAKE"); mode {
	case "":
		// Tests that run in parallel mostly wait. The command line takes precedence.
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
		os.Exit(m.Run())
	case "sleeper":
		signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
		time.Sleep(5 * time.Minute)
	case "forker": // leaves an orphan behind
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "KNOWHOW_FAKE=sleeper")
		detach(c)
		if err := c.Start(); err != nil {
			panic(err)
		}
		note("FAKE_GRANDCHILD", strconv.Itoa(c.Process.Pid))
	case "parent":
		fakeParent()
	default:
		f := &fakeServer{behaviour: strings.Fields(mode), waiting: map[string]chan string{}}
		f.serve()
	}
}

// fakeSettings describes a server of the settings that is this test binary with
// some behaviours.
func fakeSettings(id, behaviour string, more ...string) mcpsettings.Server {
	// The race detector would keep the fake from ending for a second.
	env := map[string]string{"KNOWHOW_FAKE": behaviour, "GORACE": "atexit_sleep_ms=0"}
	for i := 0; i+1 < len(more); i += 2 {
		env[more[i]] = more[i+1]
	}
	return mcpsettings.Server{ID: id, Transport: mcpsettings.Stdio, Command: os.Args[0], Env: env}
}

// fakeParent is a program that uses a pool and waits to be killed.
func fakeParent() {
	one := "stubborn grandchild"
	if os.Getenv("FAKE_DETACHED") != "" {
		one += " detached"
	}
	p := New(Options{Servers: []mcpsettings.Server{
		fakeSettings("one", one), fakeSettings("two", "normal"), fakeSettings("gone", "normal"),
	}})
	for _, id := range []string{"one", "two", "gone"} {
		if _, err := p.Call(context.Background(), id, "ping", nil); err != nil {
			fmt.Println(err)
			return
		}
	}
	_, _ = p.Call(context.Background(), "gone", "tools/call", toolCall("crash", "1"))
	fmt.Println("ready")
	select {}
}

// A fakeServer is an MCP server on stdio with bad habits.
type fakeServer struct {
	behaviour []string

	mu      sync.Mutex
	out     *bufio.Writer
	waiting map[string]chan string // requests to the client, by id
}

func (f *fakeServer) has(b string) bool {
	for _, x := range f.behaviour {
		if x == b {
			return true
		}
	}
	return false
}

func (f *fakeServer) write(line string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, _ = f.out.WriteString(line + "\n")
	_ = f.out.Flush()
}

// note appends a line to the file that an environment variable names.
func note(variable, line string) {
	name := os.Getenv(variable)
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	fmt.Fprintln(file, line)
	file.Close()
}

func (f *fakeServer) serve() {
	f.out = bufio.NewWriter(os.Stdout)
	note("FAKE_STARTS", strconv.Itoa(os.Getpid()))
	if f.has("talks") {
		fmt.Fprintln(os.Stderr, "starting with", os.Args[1:])
	}
	if f.has("die") {
		fmt.Fprintln(os.Stderr, "cannot find module \x1b[31mleft-pad\x1b[0m, key="+os.Getenv("FAKE_SECRET"))
		os.Exit(7)
	}
	if f.has("grandchild") {
		c := exec.Command(os.Args[0])
		c.Env, c.Stdout, c.Stderr = os.Environ(), os.Stdout, os.Stderr
		if f.has("nameless") {
			c.Env = []string{"FAKE_GRANDCHILD=" + os.Getenv("FAKE_GRANDCHILD")}
		}
		if f.has("orphaned") {
			c.Env = append(c.Env, "KNOWHOW_FAKE=forker")
			if err := c.Run(); err != nil {
				panic(err)
			}
		} else {
			c.Env = append(c.Env, "KNOWHOW_FAKE=sleeper")
			if f.has("detached") {
				detach(c)
			}
			if err := c.Start(); err != nil {
				panic(err)
			}
			note("FAKE_GRANDCHILD", strconv.Itoa(c.Process.Pid))
		}
	}
	if f.has("stubborn") {
		signal.Ignore(syscall.SIGTERM)
	}
	if f.has("banner") {
		f.write("Welcome to Fake Server 1.0!")
		f.write(`{"level":"info","msg":"a log line that is JSON"}`)
		f.write("")
		f.write("[not json")
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<16)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 1 {
			f.handle(line)
		}
		if err != nil {
			break
		}
	}
	if f.has("stubborn") {
		select {}
	}
}

type fakeMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (f *fakeServer) handle(line []byte) {
	var m fakeMessage
	if err := json.Unmarshal(line, &m); err != nil {
		note("FAKE_NOTES", "bad line")
		return
	}
	reply := func(result string) { f.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":` + result + `}`) }
	fail := func(code int, text string) {
		f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q,"data":{"x":1}}}`, m.ID, code,
			text))
	}
	switch m.Method {
	case "":
		f.mu.Lock()
		c := f.waiting[string(m.ID)]
		f.mu.Unlock()
		if c != nil {
			c <- string(m.Result) + string(m.Error)
		}
	case "initialize":
		note("FAKE_NOTES", "initialize "+string(m.Params))
		f.initialize(reply, fail)
	case "server/discover":
		reply(`{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},` +
			`"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"fresh","version":"9"}}}`)
	case "tools/list":
		f.list(&m, reply)
	case "tools/call":
		note("FAKE_CALLS", string(m.Params))
		if f.has("inline") {
			f.call(&m, reply, fail)
		} else {
			go f.call(&m, reply, fail)
		}
	case "ping":
		reply("{}")
	case "tasks/get":
		reply(`{"taskId":"t1","status":"completed","createdAt":"x","ttl":null,"pollInterval":5}`)
	default:
		note("FAKE_NOTES", m.Method+" "+string(m.Params))
		if len(m.ID) > 0 {
			fail(-32601, "Method not found")
		}
	}
}

func (f *fakeServer) initialize(reply func(string), fail func(int, string)) {
	switch {
	case f.has("hang"):
		fmt.Fprintln(os.Stderr, "still downloading")
	case f.has("modern"):
		fail(-32601, "Method not found")
	case f.has("ancient"):
		reply(`{"protocolVersion":"1999-01-01","capabilities":{}}`)
	case f.has("refuses"):
		fail(-32603, "no licence")
	default:
		reply(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},` +
			`"tasks":{"requests":{"tools":{"call":{}}}}},` +
			`"serverInfo":{"name":"fake","version":"1.0"},"instructions":"be nice"}`)
	}
}

func (f *fakeServer) list(m *fakeMessage, reply func(string)) {
	switch {
	case f.has("pages"):
		var p struct {
			Cursor string `json:"cursor"`
		}
		_ = json.Unmarshal(m.Params, &p)
		n, _ := strconv.Atoi(p.Cursor)
		next := ""
		if n < 4 {
			next = fmt.Sprintf(`,"nextCursor":"%d"`, n+1)
		}
		reply(fmt.Sprintf(`{"tools":[{"name":"tool_%d_b"},{"name":"tool_%d_a"}]%s}`, n, n, next))
	case f.has("messy"):
		reply(`{"tools":[null,[1],{"title":"x"},{"name":"odd","title":7},{"name":"` + os.Getenv("FAKE_SECRET") +
			`"},{"name":"` + os.Getenv("FAKE_SECRET") + `"},` +
			strings.Repeat(`{"name":"twice\u001b"},`, 7) + `{"name":"` + strings.Repeat("n", 200) + `","title":7}]}`)
	case f.has("endless"):
		reply(`{"tools":[],"nextCursor":"again"}`)
	default:
		reply(`{"tools":[{"name":"zeta","inputSchema":{"type":"object"}},{"name":"echo","title":"Echo",` +
			`"description":"says it",` +
			`"inputSchema":{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"number",` +
			`"default":1.0}}},` +
			`"outputSchema":{"x":1},"annotations":{"readOnlyHint":true},"execution":{"taskSupport":"optional"}},` +
			`{"name":""},{"name":"zeta"},7]}`)
	}
}

func (f *fakeServer) call(m *fakeMessage, reply func(string), fail func(int, string)) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
		Task      json.RawMessage `json:"task"`
		Meta      struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	_ = json.Unmarshal(m.Params, &p)
	switch p.Name {
	case "pid":
		reply(strconv.Itoa(os.Getpid()))
	case "slow":
		if f.has("cancellable") {
			return
		}
		time.Sleep(10 * time.Minute)
	case "crash":
		fmt.Fprintln(os.Stderr, "out of cheese error; token="+os.Getenv("FAKE_SECRET"))
		os.Exit(3)
	case "ask":
		reply(f.ask(string(p.Arguments)))
	case "task":
		reply(`{"task":{"taskId":"t1","status":"working","ttl":` + string(p.Task) + `}}`)
	case "giant":
		f.write(strings.Repeat("x", maxMessage+(1<<20)))
	case "big":
		reply(`"` + strings.Repeat("y", 3<<20) + `"`)
	case "error":
		fail(-32050, "it broke\n")
	case "betray":
		secret := os.Getenv("FAKE_SECRET")
		f.write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32051,"message":"%s was refused, `+
			`password=pw","data":{"why":["bad %s"],"%s":2,"token_count":3}}}`,
			m.ID, secret, secret, secret))
	case "params":
		reply(string(m.Params))
	default:
		reply(string(p.Arguments))
	}
}

// ask sends a request to the client and returns what it answers.
func (f *fakeServer) ask(method string) string {
	c := make(chan string, 1)
	f.mu.Lock()
	f.waiting[`"q-1.5"`] = c
	f.mu.Unlock()
	f.write(`{"jsonrpc":"2.0","id":"q-1.5","method":` + method + `,"params":{}}`)
	return <-c
}
