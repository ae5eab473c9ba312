// Package driver has what the drivers of bleve and FTS5 have in common. See
// ../../main.go for what a driver is.
package driver

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// A Query is a line of queries.jsonl.
type Query struct {
	Class  string
	Tokens []string
	Label  string // "" for all
}

// An Engine is a search engine that is measured.
type Engine interface {
	Build(chunks *Chunks) error            // returns when all chunks can be found
	Settle() error                         // returns when merges have ended
	Open() error                           // opens an index that was built
	Search(q Query) (total int, err error) // reads the numbers of the best ten chunks
	Close() error
}

// Main runs the command line.
func Main(open func(dir string) Engine) {
	if err := run(open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(open func(dir string) Engine) (err error) {
	if len(os.Args) != 4 {
		return errors.New("usage: DRIVER index|query FOLDER DATA")
	}
	action, corpus, e := os.Args[1], os.Args[2], open(os.Args[3])
	defer func() { err = errors.Join(err, e.Close()) }()
	if action == "index" {
		f, err := os.Open(filepath.Join(corpus, "chunks.tsv"))
		if err != nil {
			return err
		}
		defer f.Close()
		began := time.Now()
		if err := e.Build(&Chunks{lines: bufio.NewReaderSize(f, 1<<20)}); err != nil {
			return err
		}
		fmt.Println(time.Since(began).Seconds())
		return e.Settle()
	}
	began := time.Now()
	if err := e.Open(); err != nil {
		return err
	}
	fmt.Println(time.Since(began).Seconds())
	f, err := os.Open(filepath.Join(corpus, "queries.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(os.Stdout)
	for lines := json.NewDecoder(f); ; {
		var q Query
		if err := lines.Decode(&q); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		began := time.Now()
		total, err := e.Search(q)
		if err != nil {
			return fmt.Errorf("%q: %w", q.Tokens, err)
		}
		fmt.Fprintln(out, time.Since(began).Seconds(), total)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// Chunks reads chunks.tsv.
type Chunks struct{ lines *bufio.Reader }

// Next returns the next chunk. The error is io.EOF after the last one.
func (c *Chunks) Next() (label, tokens string, err error) {
	line, err := c.lines.ReadString('\n')
	if err != nil {
		return "", "", err
	}
	label, tokens, _ = strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
	return label, tokens, nil
}
