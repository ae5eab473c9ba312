package cli

import (
	"bytes"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"
)

// A reader that is read ahead loses nothing.
func TestReadAhead(t *testing.T) {
	text := strings.Repeat("0123456789\n", 1000)
	in := readAhead(t.Context(), iotest.TimeoutReader(iotest.HalfReader(strings.NewReader(text))))
	<-in.ended // at the second read
	got, err := io.ReadAll(in)
	if err != iotest.ErrTimeout || !strings.HasPrefix(text, string(got)) || len(got) == 0 {
		t.Errorf("read %d bytes, %v, want those before the error", len(got), err)
	}
	in = readAhead(t.Context(), strings.NewReader(text))
	if err := iotest.TestReader(in, []byte(text)); err != nil {
		t.Error(err)
	}
}

// A server on stdio ends with its input, also while it waits for its store.
func TestClientGoneWhileStarting(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	store := "opensearch+http://" + silent.Addr().String() + "/x"
	for _, args := range [][]string{{"mcp", t.TempDir()}, {"kb", "--transport", "stdio"}} {
		home := map[string]string{"HOME": t.TempDir()}
		env := Env{Program: "knowhow", Lookup: func(name string) (string, bool) { value, ok := home[name]; return value, ok }}
		var out, errs bytes.Buffer
		args = append(args, "--embedder", "none", "--data", t.TempDir(), "--store", store)
		if got := Main(t.Context(), args, env, strings.NewReader(initializeRequest), &out, &errs); got != 0 {
			t.Errorf("%q: exit status = %d, want 0", args, got)
		}
		if out.Len() > 0 || errs.Len() > 0 { // a server that waits to the end prints a warning
			t.Errorf("%q: stdout %q, stderr %q, want nothing", args, &out, &errs)
		}
	}
}

const initializeRequest = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}` + "\n"
