package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/knowhow-mcp/knowhow/internal/document"
	"github.com/knowhow-mcp/knowhow/internal/index"
	kquery "github.com/knowhow-mcp/knowhow/internal/query"
	"github.com/knowhow-mcp/knowhow/internal/search"
)

// drive is the driver of knowhow. Unlike the others, it analyses and stores the
// texts when it indexes, and a search returns titles, excerpts and other fields
// of the hits, and the exact number of documents.
func drive(ctx context.Context, action, corpus, data string) (err error) {
	began := time.Now()
	x, err := index.Open(ctx, index.Options{Dir: data})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if action == "index" {
		return add(ctx, x, corpus, data)
	}
	fmt.Println(time.Since(began).Seconds())
	f, err := os.Open(filepath.Join(corpus, "queries.jsonl"))
	if err != nil {
		return err
	}
	defer f.Close()
	out := bufio.NewWriter(os.Stdout)
	for lines := json.NewDecoder(f); ; {
		var q query
		if err := lines.Decode(&q); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
		s := search.Query{Text: kquery.MustParse(q.Text), Num: 10}
		if q.Label != "" {
			s.Labels = []string{q.Label}
		}
		began := time.Now()
		page, err := x.Search(ctx, s)
		if err != nil {
			return err
		}
		fmt.Fprintln(out, time.Since(began).Seconds(), page.Total)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// add adds the documents of a corpus in batches of 200 chunks, as package ingest
// does.
func add(ctx context.Context, x *index.Index, corpus, data string) error {
	f, err := os.Open(filepath.Join(corpus, "documents.gob"))
	if err != nil {
		return err
	}
	defer f.Close()
	began := time.Now()
	var batch []document.Change
	chunks := 0
	for documents := gob.NewDecoder(bufio.NewReaderSize(f, 1<<20)); ; {
		var d document.Document
		err := documents.Decode(&d)
		if err != nil && err != io.EOF {
			return err
		}
		if err == io.EOF || chunks+len(d.Chunks) > 200 {
			if err := x.Apply(ctx, batch); err != nil {
				return err
			}
			batch, chunks = nil, 0
		}
		if err == io.EOF {
			break
		}
		batch, chunks = append(batch, document.Change{Put: &d}), chunks+len(d.Chunks)
	}
	fmt.Println(time.Since(began).Seconds())
	time.Sleep(rest)
	return awaitMerges(filepath.Join(data, "segments"))
}

// rest is how long an index has not changed when it merges the segments that it
// does not merge between changes.
const rest = 40 * time.Second

// awaitMerges waits until the files in a folder have not changed for a while.
func awaitMerges(dir string) error {
	for before := ""; ; {
		files, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		now := fmt.Sprint(files)
		if now == before {
			return nil
		}
		before = now
		time.Sleep(3 * time.Second)
	}
}
