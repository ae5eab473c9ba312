package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	chatTime    = 2 * time.Minute // bounds a whole conversation
	mostRepeats = 100
)

// initLines are what @init sends.
var initLines = []string{
	`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"mcpchat","version":"1"}}}`,
	`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
}

// A chat is a conversation with a server. send sends a message and returns what
// came in answer: everything up to the response to the message's id, or
// nothing if it has none or if that is not to be waited for.
type chat struct {
	send   func(line string, wait bool) []string
	late   sync.WaitGroup // messages over HTTP that are not waited for
	heard  chan string    // what comes on the stream; nil before @listen
	said   chan string    // the first lines on standard error of a server on stdio
	header http.Header    // of later messages over HTTP
	base   string         // URL of the server over HTTP
	path   string         // that messages are posted to
	cursor string         // nextCursor of the last answer
	docID  string         // first doc_id of the last answer that had one
	jobID  string         // jobId of the last answer that had one
	upload string         // upload_id of the last answer that had one
	until  string         // what the next message is repeated for
	gone   []string       // what it is repeated to get rid of
}

// mcpchat [-http] FILE PROGRAM ARG... runs an MCP server and sends it the
// lines of FILE one by one, waiting for the answer to each request, which it
// prints. With -http it waits for the server's ready line, posts the lines to
// the address there, and prints the status of answers that are not 200 or 202.
// At the end it closes the server's standard input, or ends it with a signal,
// and exits with its status. In FILE
//
//	# ...            is a comment
//	!MESSAGE         is sent without waiting for an answer
//	*MESSAGE         is sent as long as the last answer has a nextCursor
//	@times N MESSAGE sends a message so many times, with its number for $n
//	@init            stands for the messages of the handshake
//	@wait TEXT       waits until the fake Fess has noted TEXT
//	@note TEXT       has the fake Fess note TEXT
//	@header K: V     sets a header; an empty value removes it
//	@listen          opens the stream of what the server sends by itself; what comes on it is printed
//	@heard TEXT      waits until TEXT has come on it
//	@said TEXT       waits until a server on stdio has printed a line with TEXT on standard error
//	@get PATH        prints status and body of GET PATH
//	@send METHOD PATH JSON   prints status and body of such a request
//	@done PATH [TEXT]   waits until the job at a path of the engine API has ended, or until the answer has TEXT
//	@exec PROGRAM ARG...     runs a program with $URL as the address of the server, and prints its output
//	@path PATH       posts to another path from here on, in a new session
//	@until TEXT      repeats the next message until an answer has TEXT; of the answers before, notifications alone are printed
//	@gone TEXT...    repeats the next message until no answer has one of the texts
//	@file FILE TEXT  waits until a file has TEXT
//	@write FILE TEXT writes a file
//	@remove FILE     removes a file
//	@certificate NAME   makes NAME.crt and NAME.key the files tls.crt and tls.key of the server, and waits until it uses them
//	$docID           is the first doc_id of the last answer
//	$jobID           is the jobId of the last answer that had one
//	$uploadID        is the upload_id of the last answer that had one
//	$nextCursor      is the nextCursor of the last answer, as a JSON string
func mcpchat() {
	overHTTP := flag.Bool("http", false, "talk to an HTTP server")
	flag.Parse()
	script, err := os.ReadFile(flag.Arg(0))
	check(err)
	cmd := exec.Command(flag.Arg(1), flag.Args()[2:]...)
	time.AfterFunc(chatTime, func() {
		cmd.Process.Kill()
		log.Fatalf("mcpchat: no end after %v", chatTime)
	})
	c := &chat{header: http.Header{}}
	var end func() error
	if *overHTTP {
		end = c.startHTTP(cmd)
	} else {
		end = c.startStdio(cmd)
	}
	for line := range strings.Lines(string(script)) {
		c.line(strings.TrimSpace(line))
	}
	if err := end(); err != nil {
		exit, ok := err.(*exec.ExitError)
		if !ok {
			log.Fatal(err)
		}
		os.Exit(exit.ExitCode())
	}
}

func check(err error) {
	if err != nil {
		log.Fatalf("mcpchat: %v", err)
	}
}

// line does what one line of the script says.
func (c *chat) line(line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch {
	case line == "" || strings.HasPrefix(line, "#"):
	case word == "@init":
		for _, l := range initLines {
			c.line(l)
		}
	case word == "@wait", word == "@note":
		address := strings.Replace(os.Getenv("FESS_WAIT"), "_wait", "_"+word[1:], 1)
		resp, err := http.Get(address + "?text=" + url.QueryEscape(rest))
		check(err)
		resp.Body.Close()
	case word == "@header":
		key, value, _ := strings.Cut(rest, ":")
		c.header.Set(key, strings.TrimSpace(value))
	case word == "@times":
		times, message, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(times)
		check(err)
		for i := range n {
			c.line(strings.ReplaceAll(message, "$n", strconv.Itoa(i+1)))
		}
	case word == "@listen":
		c.listen()
	case word == "@heard":
		for event := range c.heard {
			fmt.Println(event)
			if strings.Contains(event, rest) {
				return
			}
		}
		log.Fatalf("mcpchat: the stream ended without %s", rest)
	case word == "@said":
		for l := range c.said {
			if strings.Contains(l, rest) {
				return
			}
		}
		log.Fatalf("mcpchat: the server ended without a line with %s", rest)
	case word == "@get":
		resp, err := http.Get(c.base + rest)
		check(err)
		body, err := io.ReadAll(resp.Body)
		check(err)
		resp.Body.Close()
		fmt.Println(resp.Status, strings.TrimSpace(string(body)))
	case word == "@done":
		path, text, _ := strings.Cut(rest, " ")
		ended := func(state []byte) bool {
			if text != "" {
				return bytes.Contains(state, []byte(text))
			}
			return bytes.Contains(state, []byte(`"status":"done"`)) ||
				bytes.Contains(state, []byte(`"status":"failed"`))
		}
		for state := []byte(nil); !ended(state); <-time.After(10 * time.Millisecond) {
			req, err := http.NewRequest("GET", c.base+path, nil)
			check(err)
			req.Header.Set("Authorization", c.header.Get("Authorization"))
			resp, err := http.DefaultClient.Do(req)
			check(err)
			state, err = io.ReadAll(resp.Body)
			check(err)
			resp.Body.Close()
		}
	case word == "@send":
		method, rest, _ := strings.Cut(rest, " ")
		path, body, _ := strings.Cut(strings.ReplaceAll(rest, "$uploadID", c.upload), " ")
		req, err := http.NewRequest(method, c.base+path, strings.NewReader(body))
		check(err)
		req.Header.Set("Content-Type", "application/json")
		for key, values := range c.header {
			req.Header[key] = values
		}
		resp, err := http.DefaultClient.Do(req)
		check(err)
		answer, err := io.ReadAll(resp.Body)
		check(err)
		resp.Body.Close()
		fmt.Println(resp.Status, strings.TrimSpace(string(answer)))
	case word == "@exec":
		words := strings.Fields(strings.ReplaceAll(rest, "$URL", c.base))
		out, err := exec.Command(words[0], words[1:]...).CombinedOutput()
		fmt.Print(string(out))
		if err != nil {
			fmt.Println(err)
		}
	case word == "@path":
		c.path = rest
		c.header.Del("Mcp-Session-Id")
	case word == "@until":
		c.until = rest
	case word == "@gone":
		c.gone = strings.Fields(rest)
	case word == "@file":
		name, text, _ := strings.Cut(rest, " ")
		// What a program writes beside its answers can only be looked for.
		for data := []byte(nil); !bytes.Contains(data, []byte(text)); <-time.After(10 * time.Millisecond) {
			data, _ = os.ReadFile(name) // it may come yet
		}
	case word == "@write":
		name, text, _ := strings.Cut(rest, " ")
		check(os.WriteFile(name, []byte(text+"\n"), 0o666))
	case word == "@remove":
		check(os.Remove(rest))
	case word == "@certificate":
		c.replaceCertificate(rest)
	case strings.HasPrefix(line, "*"):
		for i := 0; c.cursor != "" && i < mostRepeats; i++ {
			c.line(line[1:])
		}
	default:
		c.message(line)
	}
}

// message sends one message, repeatedly after @until, and prints what comes
// back of the last time.
func (c *chat) message(line string) {
	message, quiet := strings.CutPrefix(line, "!")
	quoted, err := json.Marshal(c.cursor)
	check(err)
	message = strings.NewReplacer("$nextCursor", string(quoted), "$docID", c.docID, "$jobID", c.jobID, "$uploadID",
		c.upload).Replace(message)
	answers := c.send(message, !quiet)
	// The server works at its own pace, and what it does shows in its
	// answers alone: so they are asked for until chatTime is over.
	again := func() bool {
		all := strings.Join(answers, "\n")
		return !strings.Contains(all, c.until) || slices.ContainsFunc(c.gone,
			func(text string) bool { return strings.Contains(all, text) })
	}
	for again() {
		for _, answer := range answers {
			if strings.Contains(answer, `"method":`) {
				fmt.Println(answer)
			}
		}
		<-time.After(20 * time.Millisecond)
		answers = c.send(message, true)
	}
	c.until, c.gone = "", nil
	for _, answer := range answers {
		fmt.Println(answer)
		c.cursor = nextCursor(answer)
		if m := docIDPattern.FindStringSubmatch(answer); m != nil {
			c.docID = m[1]
		}
		if m := jobIDPattern.FindStringSubmatch(answer); m != nil {
			c.jobID = m[1]
		}
		if m := uploadIDPattern.FindStringSubmatch(answer); m != nil {
			c.upload = m[1]
		}
	}
}

// docIDPattern finds a doc_id in a result, which is JSON inside of JSON.
var docIDPattern = regexp.MustCompile(`\\"doc_id\\":\\"([^\\"]+)`)

// jobIDPattern finds the id of a job likewise.
var jobIDPattern = regexp.MustCompile(`\\"jobId\\":\\"([^\\"]+)`)

// uploadIDPattern finds the id of an upload likewise.
var uploadIDPattern = regexp.MustCompile(`\\"upload_id\\":\\"([^\\"]+)`)

// nextCursor returns the nextCursor of a result, or of the JSON text in a
// tool's result.
func nextCursor(answer string) string {
	var m struct {
		Result struct {
			NextCursor string
			Content    []struct{ Text string }
		}
	}
	if json.Unmarshal([]byte(answer), &m) != nil {
		return ""
	}
	if m.Result.NextCursor == "" && len(m.Result.Content) == 1 {
		var inner struct{ NextCursor string }
		if json.Unmarshal([]byte(m.Result.Content[0].Text), &inner) == nil {
			return inner.NextCursor
		}
	}
	return m.Result.NextCursor
}

// A head has the members that decide whether one message answers another.
type head struct {
	ID     any
	Method string
}

// expects returns the id of the response that a message asks for. What is no
// valid message is answered with id null.
func expects(message string) (id any, ok bool) {
	var h head
	if err := json.Unmarshal([]byte(message), &h); err != nil {
		return nil, true
	}
	return h.ID, h.ID != nil && h.Method != ""
}

// startStdio starts a server on its standard streams.
func (c *chat) startStdio(cmd *exec.Cmd) (end func() error) {
	errs, err := cmd.StderrPipe()
	check(err)
	in, err := cmd.StdinPipe()
	check(err)
	out, err := cmd.StdoutPipe()
	check(err)
	check(cmd.Start())
	c.said = make(chan string, 100)
	var printing sync.WaitGroup
	printing.Go(func() {
		defer close(c.said)
		for said := bufio.NewScanner(errs); said.Scan(); {
			fmt.Fprintln(os.Stderr, said.Text())
			select {
			case c.said <- said.Text():
			default: // no script waits for so many lines
			}
		}
	})
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 32<<20)
	c.send = func(message string, wait bool) (answers []string) {
		_, err := io.WriteString(in, message+"\n")
		check(err)
		id, ok := expects(message)
		for ok && wait && lines.Scan() {
			answers = append(answers, lines.Text())
			var h head
			if json.Unmarshal(lines.Bytes(), &h) == nil && h.Method == "" && h.ID == id {
				break
			}
		}
		return answers
	}
	return func() error {
		check(in.Close())
		for lines.Scan() {
			fmt.Println("after the end:", lines.Text())
		}
		printing.Wait()
		return cmd.Wait()
	}
}

// startHTTP starts a server and waits for its ready line.
func (c *chat) startHTTP(cmd *exec.Cmd) (end func() error) {
	errs, err := cmd.StderrPipe()
	check(err)
	check(cmd.Start())
	lines := bufio.NewScanner(errs)
	address := ""
	for address == "" && lines.Scan() {
		fmt.Fprintln(os.Stderr, lines.Text())
		address, _ = strings.CutPrefix(lines.Text(), "listening on ")
		if address == lines.Text() {
			address = ""
		}
	}
	if address == "" {
		return cmd.Wait
	}
	rest := make(chan struct{})
	go func() {
		for lines.Scan() {
			fmt.Fprintln(os.Stderr, lines.Text())
		}
		close(rest)
	}()
	u, err := url.Parse(strings.Replace(address, "0.0.0.0", "127.0.0.1", 1))
	check(err)
	c.base = u.Scheme + "://" + u.Host
	c.path = u.Path
	c.send = func(message string, wait bool) []string {
		req := c.request("POST", strings.NewReader(message))
		if wait {
			return c.answers(req)
		}
		c.late.Go(func() {
			for _, answer := range c.answers(req) {
				fmt.Println("late:", answer)
			}
		})
		return nil
	}
	return func() error {
		c.late.Wait()
		check(cmd.Process.Signal(syscall.SIGTERM))
		<-rest
		err := cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() &&
			status.Signal() == syscall.SIGTERM {
			return nil // the program of the tests does not handle signals
		}
		return err
	}
}

// request makes a request with the headers of the script.
func (c *chat) request(method string, body io.Reader) *http.Request {
	req, err := http.NewRequest(method, c.base+c.path, body)
	check(err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for key, values := range c.header {
		if values[0] != "" {
			req.Header[key] = values
		}
	}
	req.Host = c.header.Get("Host")
	return req
}

// listen opens a stream of what comes without being asked for.
func (c *chat) listen() {
	req := c.request("GET", nil)
	resp, err := http.DefaultClient.Do(req)
	check(err)
	if resp.StatusCode != http.StatusOK {
		log.Fatalf("mcpchat: @listen: %s", resp.Status)
	}
	c.heard = make(chan string, 1000)
	go func() { // ends with the server
		defer close(c.heard)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && data != "" {
				c.heard <- data
			}
		}
	}()
}

// answers sends a message over HTTP and returns what came back.
func (c *chat) answers(req *http.Request) []string {
	resp, err := http.DefaultClient.Do(req)
	check(err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check(err)
	if id := resp.Header.Get("Mcp-Session-Id"); id != "" && req.Header.Get("Mcp-Session-Id") == "" {
		c.header.Set("Mcp-Session-Id", id)
	}
	var answers []string
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusAccepted {
		answers = append(answers, "HTTP "+resp.Status)
	}
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for line := range bytes.Lines(body) {
			if data, ok := bytes.CutPrefix(line, []byte("data: ")); ok {
				answers = append(answers, string(bytes.TrimSpace(data)))
			}
		}
		return answers
	}
	if len(body) > 0 {
		answers = append(answers, strings.TrimSpace(string(body)))
	}
	return answers
}
