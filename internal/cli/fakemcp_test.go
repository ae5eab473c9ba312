package cli_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// fakeTools are the tools that a fakemcp may have, as it lists them.
var fakeTools = map[string]string{
	"echo": `{"name":"echo","description":"Echoes back. It is of no other use.","inputSchema":{"type":"object","properties":{"message":{"type":"string","description":"what to echo"}},"required":["message"]}}`,
	"collect": `{"name":"collect","description":"Answers with its arguments.","inputSchema":{"type":"object","properties":{
		"words":{"type":"array","items":{"type":"string"}},"numbers":{"type":"array","items":{"type":"integer"}},"count":{"type":"integer"},
		"deep":{"type":"object"},"on":{"type":"boolean"},"text":{"type":"string"}}}}`,
	"plain":  `{"name":"plain"}`,
	"fail":   `{"name":"fail","description":"Always fails.","inputSchema":{"type":"object"}}`,
	"refuse": `{"name":"refuse","description":"Answers with an error of JSON-RPC.","inputSchema":{"type":"object"}}`,
	"curse":  `{"name":"curse","description":"Fails in red.","inputSchema":{"type":"object"}}`,
	"crash":  `{"name":"crash","description":"Ends the server.","inputSchema":{"type":"object"}}`,
	"sleep":  `{"name":"sleep","description":"Never answers.","inputSchema":{"type":"object"}}`,
	"work":   `{"name":"work","description":"Takes long.","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}}`,
}

// A fakeServer is an MCP server on stdio.
type fakeServer struct {
	tools    []string
	more     string // file that names more tools, one a line; read for each list
	tasks    bool
	listFail bool

	mu sync.Mutex // for stdout
}

// fakemcp [OPTION...] TOOL... is an MCP server on stdio. Tools that are not in
// fakeTools say "Does NAME." and $FAKE_MOOD. It appends its process id to $FAKE_DIR/pids and
// each tool called to $FAKE_DIR/calls, where that variable is set. The
// options:
//
//	-die TEXT    write TEXT to stderr and end with status 3
//	-hang        answer nothing
//	-nolist      answer tools/list with an error
//	-tasks       offer calls as tasks
//	-more FILE   have the tools that FILE names, too; the tool "announce" says that it was changed
func fakemcp() {
	s := &fakeServer{}
	die := flag.String("die", "", "")
	hang := flag.Bool("hang", false, "")
	flag.BoolVar(&s.listFail, "nolist", false, "")
	flag.BoolVar(&s.tasks, "tasks", false, "")
	flag.StringVar(&s.more, "more", "", "")
	flag.Parse()
	s.tools = flag.Args()
	fakeNote("pids", fmt.Sprint(os.Getpid()))
	if *die != "" {
		fmt.Fprintln(os.Stderr, *die)
		os.Exit(3)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if !*hang {
			s.receive(line)
		}
	}
}

// fakeNote appends a line to a file that a script can look at.
func fakeNote(name, line string) {
	dir := os.Getenv("FAKE_DIR")
	if dir == "" {
		return
	}
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	check(err)
	_, err = fmt.Fprintln(f, line)
	check(err)
	check(f.Close())
}

// receive answers one message.
func (s *fakeServer) receive(line []byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params json.RawMessage
	}
	check(json.Unmarshal(line, &m))
	if m.ID == nil {
		return
	}
	switch result, failure := s.answer(m.Method, m.Params); {
	case failure != "":
		s.send(`{"jsonrpc":"2.0","id":%s,"error":%s}`, m.ID, failure)
	case result != "":
		s.send(`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}
}

func (s *fakeServer) send(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	line := strings.NewReplacer("\n", "", "\t", "").Replace(fmt.Sprintf(format, args...))
	fmt.Println(line)
}

// answer returns a result or an error, or neither for no answer at all.
func (s *fakeServer) answer(method string, params json.RawMessage) (result, failure string) {
	switch method {
	case "initialize":
		capabilities := `{"tools":{"listChanged":true}}`
		if s.tasks {
			capabilities = `{"tools":{},"tasks":{"requests":{"tools":{"call":{}}}}}`
		}
		return fmt.Sprintf(`{"protocolVersion":"2025-11-25","capabilities":%s,"serverInfo":{"name":"fakemcp","version":"1"}}`, capabilities), ""
	case "tools/list":
		if s.listFail {
			return "", `{"code":-32603,"message":"no list today"}`
		}
		return `{"tools":[` + strings.Join(s.list(), ",") + `]}`, ""
	case "tools/call":
		return s.call(params)
	case "tasks/get":
		return `{"taskId":"t1","status":"completed"}`, ""
	}
	return "", `{"code":-32601,"message":"Method not found","data":{"method":"` + method + `"}}`
}

func (s *fakeServer) list() []string {
	names := s.tools
	if s.more != "" {
		data, err := os.ReadFile(s.more)
		check(err)
		names = append(strings.Fields(string(data)), names...)
	}
	var tools []string
	for _, name := range names {
		tool, ok := fakeTools[name]
		if !ok {
			tool = fmt.Sprintf(`{"name":%q,"description":%q,"inputSchema":{"type":"object"}}`, name,
				"Does "+name+"."+os.Getenv("FAKE_MOOD"))
		}
		tools = append(tools, tool)
	}
	return tools
}

func (s *fakeServer) call(params json.RawMessage) (result, failure string) {
	var p struct {
		Name      string
		Arguments struct{ Message string }
		Task      json.RawMessage
	}
	check(json.Unmarshal(params, &p))
	var raw struct{ Arguments json.RawMessage }
	check(json.Unmarshal(params, &raw))
	fakeNote("calls", p.Name)
	text := func(s string) string {
		t, err := json.Marshal(s)
		check(err)
		return `{"content":[{"type":"text","text":` + string(t) + `}]}`
	}
	switch p.Name {
	case "echo":
		return text("Echo: " + p.Arguments.Message), ""
	case "fail":
		return `{"content":[{"type":"text","text":"the disk is made of cheese"}],"isError":true}`, ""
	case "curse":
		if p.Arguments.Message == "" {
			return `{"content":[{"type":"text","text":"\u001b[31mred\nand more"}],"isError":true}`, ""
		}
		return "", `{"code":-32000,"message":"\u001b[31mred"}`
	case "refuse":
		return "", `{"code":-32602,"message":"I would rather not","data":{"why":"mood"}}`
	case "unknown":
		return "", `{"code":-32602,"message":"Tool unknown not found"}`
	case "crash":
		fmt.Fprintln(os.Stderr, "out of cheese")
		os.Exit(3)
	case "sleep":
		return "", ""
	case "announce":
		s.send(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
	case "work":
		if p.Task != nil {
			return `{"task":{"taskId":"t1","status":"working","pollInterval":10}}`, ""
		}
		return "", `{"code":-32601,"message":"work must be called as a task"}`
	case "picture":
		return `{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"}]}`, ""
	case "structured":
		return `{"content":[],"structuredContent":{"answer": 42}}`, ""
	}
	return text(string(raw.Arguments)), ""
}
