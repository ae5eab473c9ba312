package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/knowhow-mcp/knowhow/internal/mcpclient"
	"github.com/knowhow-mcp/knowhow/internal/skill"
)

// references are the recorded servers that demonstrate MCP. The others are in
// practical use.
const references = " everything filesystem memory sequential-thinking "

// A recordedServer is the recorded answers of a public server.
type recordedServer struct {
	catalog mcpclient.Catalog
	raw     []json.RawMessage // its tools as it wrote them
}

// recordedServers returns all recorded servers, sorted by name.
func recordedServers(b *testing.B) []recordedServer {
	b.Helper()
	files, err := filepath.Glob("../internal/skill/testdata/servers/*.json")
	if err != nil || len(files) == 0 {
		b.Skip("no recorded servers in internal/skill/testdata/servers")
	}
	var all []recordedServer
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		var answer struct {
			Instructions string
			Tools        []json.RawMessage
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			b.Fatalf("%s: %v", file, err)
		}
		s := recordedServer{raw: answer.Tools}
		s.catalog.Server = strings.TrimSuffix(filepath.Base(file), ".json")
		s.catalog.Instructions = answer.Instructions
		for _, raw := range answer.Tools {
			var t mcpclient.Tool
			if err := json.Unmarshal(raw, &t); err != nil {
				b.Fatalf("%s: %v", file, err)
			}
			s.catalog.Tools = append(s.catalog.Tools, t)
		}
		all = append(all, s)
	}
	return all
}

// injected returns the tools as a client adds them to a model's context, in the
// format of Anthropic's API.
func injected(b *testing.B, servers []recordedServer) string {
	b.Helper()
	type tool struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"input_schema"`
	}
	var all []tool
	for _, s := range servers {
		for _, t := range s.catalog.Tools {
			all = append(all, tool{"mcp__" + s.catalog.Server + "__" + t.Name, t.Description, t.InputSchema})
		}
	}
	var out strings.Builder
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(all); err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// catalogText returns the list of skills as a client shows it to a model.
func catalogText(servers []recordedServer, o skill.Options) string {
	var catalogs []mcpclient.Catalog
	for _, s := range servers {
		catalogs = append(catalogs, s.catalog)
	}
	skills, _ := skill.Render(catalogs, o)
	var out strings.Builder
	for _, s := range skills {
		out.WriteString("- " + s.Name + ": " + s.Description + "\n")
	}
	return out.String()
}

// tokens returns the number of o200k tokens of each text. The package
// gpt-tokenizer and Node are installed in the folder.
func tokens(b *testing.B, dir string, texts []string) []int {
	b.Helper()
	const script = `import {encode} from "gpt-tokenizer/encoding/o200k_base"
let input = ""
for await (const part of process.stdin) input += part
console.log(JSON.stringify(JSON.parse(input).map(text => encode(text, {disallowedSpecial: new Set()}).length)))`
	in, err := json.Marshal(texts)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(dir, "node_modules", "node", "bin", "node"), "--input-type=module", "-e", script)
	cmd.Dir = dir
	cmd.Stdin = bytes.NewReader(in)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var counts []int
	if err == nil {
		err = json.Unmarshal(out, &counts)
	}
	if err != nil || len(counts) != len(texts) {
		b.Fatalf("counting tokens: %v, %.200s", err, out)
	}
	return counts
}

// BenchmarkBridgeSkills reports how much of a model's context the tools of
// recorded servers use, and how much the lists of their skills use.
func BenchmarkBridgeSkills(b *testing.B) {
	all := recordedServers(b)
	sets := map[string][]recordedServer{}
	for _, s := range all {
		set := "in-use"
		if strings.Contains(references, " "+s.catalog.Server+" ") {
			set = "reference"
		}
		sets[set] = append(sets[set], s)
	}
	for _, set := range []string{"in-use", "reference"} {
		servers := sets[set]
		names := []string{"tools", "full", "first-sentence", "grouped"}
		texts := []string{injected(b, servers), catalogText(servers, skill.Options{Description: "full"}),
			catalogText(servers, skill.Options{}), catalogText(servers, skill.Options{GroupByServer: true})}
		b.Run(set+"/characters", func(b *testing.B) {
			var counts []int
			for b.Loop() {
				counts = counts[:0]
				for _, t := range texts {
					counts = append(counts, utf8.RuneCountInString(t))
				}
			}
			reportRatios(b, names, counts, "characters")
		})
		b.Run(set+"/tokens", func(b *testing.B) {
			var counts []int
			for b.Loop() {
				counts = tokens(b, findPeers(b).dir, texts)
			}
			reportRatios(b, names, counts, "tokens")
		})
	}
}

// reportRatios reports the sizes of texts, and how many times smaller than the
// first one they are.
func reportRatios(b *testing.B, names []string, counts []int, unit string) {
	b.Helper()
	b.ReportMetric(0, "ns/op")
	for i, name := range names {
		b.ReportMetric(float64(counts[i]), name+"-"+unit)
		if i > 0 {
			b.ReportMetric(float64(counts[0])/float64(counts[i]), name+"-times")
		}
	}
}
