// Engine compares the search engine of knowhow with others on the same chunks.
// Usually bench/engine/run starts it, which fetches the corpora and builds the
// other engines:
//
//	engine -work FOLDER -docs FOLDER [-more FOLDER] [-rounds N] [SIZE ...]
//
// Each engine is a program, its driver, that is run in two ways:
//
//	DRIVER index FOLDER DATA   stores the chunks of FOLDER in the empty folder
//	                           DATA, and prints the seconds until all chunks
//	                           can be found. It ends when merges have ended.
//	DRIVER query FOLDER DATA   opens DATA and prints the seconds that this
//	                           took. Then it prints, for each line of
//	                           FOLDER/queries.jsonl, the seconds of a search
//	                           for ten hits and the total. It ends when its
//	                           standard input does.
//
// The driver of knowhow is this program; see knowhow.go. The file corpus.go
// describes the files of FOLDER.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sizes are the corpora by name: how many chunks they have at most, and whether
// they include the additional documents.
var sizes = map[string]struct {
	chunks int
	more   bool
}{
	"small":  {chunks: math.MaxInt},
	"medium": {chunks: 128_000, more: true},
	"large":  {chunks: 396_000, more: true},
}

// An engine is one column of the tables.
type engine struct {
	name   string // of the column
	driver string // name of the program in the folder bin
	args   []string
}

var engines = []engine{
	{name: "knowhow", driver: "knowhow", args: []string{"drive"}},
	{name: "tantivy", driver: "tantivy"},
	{name: "tantivy, exact totals", driver: "tantivy", args: []string{"totals"}},
	{name: "bleve", driver: "bleve"},
	{name: "SQLite FTS5", driver: "fts5"},
}

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "engine:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 4 && args[0] == "drive" {
		return drive(ctx, args[1], args[2], args[3])
	}
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	work := flags.String("work", "", "folder for corpora and indexes, and for the drivers in bin")
	docs := flags.String("docs", "", "folder that bench/debian-docs filled")
	more := flags.String("more", "", "another one, with the additional documents")
	rounds := flags.Int("rounds", 1, "rounds of queries")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, name := range flags.Args() {
		size, ok := sizes[name]
		if !ok {
			return fmt.Errorf("there is no size %q: want small, medium or large", name)
		}
		folders := []string{*docs}
		if size.more {
			if *more == "" {
				fmt.Printf("The size %s is skipped: its documents are missing.\n\n", name)
				continue
			}
			folders = append(folders, *more)
		}
		c, err := makeCorpus(ctx, filepath.Join(*work, name), folders, size.chunks)
		if err != nil {
			return err
		}
		if err := compare(*work, c, *rounds); err != nil {
			return err
		}
	}
	return nil
}

// results are the measurements of an engine.
type results struct {
	build
	open, memory []float64            // of each round: seconds, bytes
	p50, p95     map[string][]float64 // the same by class, in seconds
	total        map[string]float64   // mean by class
}

// A build is the measurements of an index that was built.
type build struct {
	Seconds, CPU float64
	Size         int64 // in bytes
	Key          string
}

// compare measures all engines with one corpus and prints a table.
func compare(work string, c corpus, rounds int) error {
	var columns []engine
	all := map[string]*results{}
	for _, e := range engines {
		program := filepath.Join(work, "bin", e.driver)
		if reason, err := os.ReadFile(program + ".skipped"); err == nil {
			fmt.Printf("Skipped: %s, because %s\n\n", e.name, strings.TrimSpace(string(reason)))
			continue
		}
		b, err := e.build(program, c)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		columns = append(columns, e)
		all[e.name] = &results{build: b, p50: map[string][]float64{}, p95: map[string][]float64{}, total: map[string]float64{}}
	}
	for range rounds {
		for _, e := range columns {
			if err := e.round(filepath.Join(work, "bin", e.driver), c, all[e.name]); err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
		}
	}
	c.print(columns, all, rounds)
	return nil
}

func (e engine) data(c corpus) string { return filepath.Join(c.dir, e.driver) }

// build builds the index of a corpus, unless this driver has already done so.
func (e engine) build(program string, c corpus) (build, error) {
	var b build
	code, err := os.ReadFile(program)
	if err != nil {
		return b, err
	}
	key := fmt.Sprintf("%s %x", c.Key, sha256.Sum256(code))
	if old, err := os.ReadFile(e.data(c) + ".json"); err == nil && json.Unmarshal(old, &b) == nil && b.Key == key {
		return b, nil
	}
	fmt.Fprintf(os.Stderr, "%s: indexing %d chunks\n", e.name, c.Chunks)
	if err := errors.Join(os.RemoveAll(e.data(c)), os.Mkdir(e.data(c), 0o700)); err != nil {
		return b, err
	}
	cmd := e.command(program, "index", c)
	out, err := cmd.Output()
	if err != nil {
		return b, err
	}
	b = build{Key: key, CPU: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
	if _, err := fmt.Sscan(string(out), &b.Seconds); err != nil {
		return b, fmt.Errorf("reading the output: %w", err)
	}
	err = filepath.WalkDir(e.data(c), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			b.Size += info.Size()
		}
		return err
	})
	if err != nil {
		return b, err
	}
	record, err := json.Marshal(b)
	if err != nil {
		return b, err
	}
	return b, os.WriteFile(e.data(c)+".json", record, 0o600)
}

func (e engine) command(program, action string, c corpus) *exec.Cmd {
	cmd := exec.Command(program, slices.Concat(e.args, []string{action, c.dir, e.data(c)})...)
	cmd.Stderr = os.Stderr
	return cmd
}

// round runs all queries in a new process and adds its results to r.
func (e engine) round(program string, c corpus, r *results) error {
	cmd := e.command(program, "query", c)
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	defer func() { // after an error
		cmd.Process.Kill()
		cmd.Wait()
	}()
	lines := bufio.NewReader(out)
	var open, first float64
	if _, err := fmt.Fscan(lines, &open); err != nil {
		return fmt.Errorf("opening the index: %w", err)
	}
	times, totals := map[string][]float64{}, map[string]float64{}
	for i, class := range c.classes {
		var seconds, total float64
		if _, err := fmt.Fscan(lines, &seconds, &total); err != nil {
			return fmt.Errorf("query %d: %w", i, err)
		}
		if i == 0 {
			first = seconds
		}
		if i >= c.warm && i < 2*c.warm {
			times[class] = append(times[class], seconds)
			totals[class] += total
		}
	}
	for class, t := range times {
		slices.Sort(t)
		r.p50[class] = append(r.p50[class], quantile(t, 0.5))
		r.p95[class] = append(r.p95[class], quantile(t, 0.95))
		r.total[class] = totals[class] / float64(len(t))
	}
	r.open = append(r.open, open+first)
	r.memory = append(r.memory, memoryOf(cmd.Process.Pid))
	if err := in.Close(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, lines); err != nil {
		return err
	}
	return cmd.Wait()
}

// memoryOf returns the resident memory of a process in bytes, and 0 if the
// system does not report it as Linux does.
func memoryOf(pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	var kB float64
	fmt.Sscan(rest, &kB)
	return kB * 1024
}

// quantile returns the p-th quantile of sorted values, by the nearest rank.
func quantile(sorted []float64, p float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	return sorted[max(int(math.Ceil(p*float64(len(sorted))))-1, 0)]
}

func median(values []float64) float64 { return quantile(slices.Sorted(slices.Values(values)), 0.5) }

// print prints the results as Markdown.
func (c corpus) print(columns []engine, all map[string]*results, rounds int) {
	load, _ := os.ReadFile("/proc/loadavg") // "" on other systems
	fmt.Printf("### %d chunks\n\n%d documents, %.1f million tokens, %.0f MB of text; rounds: %d; %s; load %s\n\n", c.Chunks, c.Documents,
		float64(c.Tokens)/1e6, float64(c.Bytes)/1e6, rounds, time.Now().Format(time.DateOnly), cmp.Or(strings.SplitN(string(load), " ", 2)[0], "unknown"))
	row := func(name string, cell func(e engine, r *results) string) {
		fmt.Printf("| %s |", name)
		for _, e := range columns {
			fmt.Printf(" %s |", cell(e, all[e.name]))
		}
		fmt.Println()
	}
	// The others count chunks, and count those that have all words, where
	// knowhow counts documents.
	documents, chunks := map[string]float64{}, map[string]float64{}
	for _, e := range columns {
		for class, total := range all[e.name].total {
			if e.driver == "knowhow" {
				documents[class] = total
			} else {
				chunks[class] = max(chunks[class], total)
			}
		}
	}
	row("p50 / p95 in ms (matches)", func(e engine, _ *results) string { return e.name })
	row("---", func(engine, *results) string { return "---" })
	for _, k := range kinds {
		row(fmt.Sprintf("%s (%.0f documents, %.0f chunks)", k.name, documents[k.name], chunks[k.name]), func(_ engine, r *results) string {
			if r.total[k.name] == 0 {
				return "–"
			}
			return fmt.Sprintf("%.2f / %.2f", 1e3*median(r.p50[k.name]), 1e3*median(r.p95[k.name]))
		})
	}
	for _, line := range []struct {
		name, format string
		value        func(r *results) float64
	}{
		{"build, s", "%.1f", func(r *results) float64 { return r.Seconds }},
		{"build, CPU s", "%.1f", func(r *results) float64 { return r.CPU }},
		{"size, MB", "%.0f", func(r *results) float64 { return float64(r.Size) / 1e6 }},
		{"open and first search, ms", "%.1f", func(r *results) float64 { return 1e3 * median(r.open) }},
		{"memory after 2,000 searches, MB", "%.0f", func(r *results) float64 { return median(r.memory) / 1e6 }},
	} {
		row(line.name, func(_ engine, r *results) string { return fmt.Sprintf(line.format, line.value(r)) })
	}
	fmt.Println()
}
