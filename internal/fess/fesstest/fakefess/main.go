// Command fakefess runs the fake Fess server of package fesstest, with the
// documents of the contract suite and one long document. It is for manual tests
// and for checks with other MCP clients:
//
//	go run ./internal/fess/fesstest/fakefess [ADDR]
//
// It listens on ADDR, by default on any free port of 127.0.0.1, and prints its
// URL. Hits contain the documents' texts.
package main

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/fess/fesstest"
	"github.com/knowhow-mcp/knowhow/internal/search/searchtest"
)

func main() {
	addr := "127.0.0.1:0"
	if len(os.Args) > 1 {
		addr = os.Args[1]
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "fakefess:", err)
		os.Exit(1)
	}
	fmt.Printf("http://%s\n", l.Addr())
	ledger := strings.Repeat("A line of the ledger about the budget.\n\n", 500)
	docs := append(searchtest.Corpus(), document.Document{
		ID: "ledger", Label: "finance", Path: "ledger.txt", URL: "http://docs.example.com/ledger.txt", Title: "Ledger",
		MIMEType: "text/plain", FileType: "txt", Filename: "ledger.txt", Host: "docs.example.com",
		Text: ledger, Modified: time.Unix(1750000000, 0), Size: int64(len(ledger)),
	})
	s := &http.Server{Handler: fesstest.NewHandler(docs, fesstest.Options{SendContent: true}),
		ReadHeaderTimeout: 10 * time.Second}
	fmt.Fprintln(os.Stderr, "fakefess:", s.Serve(l))
	os.Exit(1)
}
