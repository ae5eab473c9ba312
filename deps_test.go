package knowhow_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/knowhow-mcp/knowhow"

// deps lists the packages below internal that each package may import. All
// packages may import errkind. Like go/build/deps_test.go, it states a policy,
// whose reasons are in docs/architecture.md. Do not change it only to make a
// build pass.
var deps = map[string]string{
	// Vocabulary: no behaviour to speak of.
	"errkind": "", "document": "", "search": "query document",

	// Users and their rights.
	"access": "atomicfile config document filelock", "audit": "logfile sanitize",

	// Configuration, logging, output and formats.
	"config": "spell sanitize", "configfile": "atomicfile", "logfile": "", "atomicfile": "", "filelock": "", "metrics": "audit",
	"spell": "", "compact": "", "sanitize": "", "schema": "compact spell", "terminal": "sanitize",

	// Text processing without access to disk or network.
	"extract":       "document extract/plain extract/charset extract/unpack extract/office extract/markup extract/mail extract/data extract/code extract/pdf",
	"extract/plain": "document", "extract/charset": "extract/plain", "extract/unpack": "extract/plain",
	"extract/data": "extract/plain", "extract/code": "extract/plain",
	"extract/markup": "document extract/plain extract/data",
	"extract/office": "document extract/plain extract/charset extract/unpack extract/markup",
	"extract/mail":   "extract/plain extract/charset extract/markup",
	"chunk":          "document", "analysis": "", "query": "", "segment": "relevance",
	"ignore": "", "relevance": "",
	"passage":     "analysis document search",
	"extract/pdf": "document extract/plain extract/pdf/cid extract/pdf/cos", "extract/pdf/cid": "",
	"extract/pdf/cid/make": "", "extract/pdf/cos": "",

	// Vectors, without access to disk or network.
	"vector": "", "vector/faiss": "", "fusion": "",

	// Storage, indexing and background work.
	"retrieval":  "analysis document fusion passage query search",
	"match":      "analysis passage query relevance retrieval segment",
	"ingest":     "document extract chunk ignore sanitize",
	"opensearch": "document search analysis query embed httpclient passage relevance retrieval vector",
	"indexing":   "document extract index ingest embed repository search site terminal sanitize",

	// The embedded store. Its parts know nothing of each other.
	"index":          "document search analysis match query segment embed fusion passage retrieval index/database index/queue index/segments index/vectors",
	"index/database": "",
	"index/queue":    "index/database",
	"index/segments": "analysis document index/database relevance segment",
	"index/vectors":  "document embed index/database vector",

	"storecopy": "document",

	// Vectors of texts.
	"embed": "", "embed/safetensors": "", "embed/tokenizer": "", "embed/kernel": "",
	"embed/bert":        "embed embed/kernel embed/safetensors embed/tokenizer",
	"embed/minilm":      "embed embed/bert",
	"embed/minilm/make": "embed/bert",
	"embed/remote":      "embed httpclient",
	"embed/static":      "embed embed/safetensors embed/tokenizer",
	"embed/open":        "embed embed/bert embed/minilm embed/remote embed/static",

	"fetch":   "httpclient",
	"content": "chunk extract fetch search",
	"site":    "fetch httpclient ignore",
	"job":     "",

	// The Fess client, the guarded listener of the servers, and MCP.
	"httpclient": "",
	"fess":       "fess/wire search query httpclient",
	"fess/wire":  "search",
	"httpguard":  "sanitize",
	"oauth":      "httpclient httpguard sanitize",
	"fessserver": "fess/wire httpguard search query sanitize",
	"mcpserver":  "httpguard schema compact spell sanitize",

	// MCP client.
	"mcpsettings":      "configfile spell",
	"mcpclient":        "mcpsettings compact spell mcpclient/child mcpclient/redact sanitize httpclient",
	"mcpclient/child":  "",
	"mcpclient/redact": "sanitize",

	// The table of MCP client programs.
	"clients": "compact spell configfile sanitize",

	// Agent Skills from MCP servers.
	"skill":       "mcpclient spell sanitize",
	"skill/store": "skill mcpclient sanitize",
	"invoke":      "httpguard httpclient mcpclient compact spell sanitize",

	// The systems. None imports another, or a backend it need not know:
	// searchmcp sees search, never fess or index.
	"users":     "access audit httpguard mcpserver oauth",
	"searchmcp": "audit document search passage query content chunk job mcpserver compact sanitize spell",

	// Datasets: search and creation know no server; the tools know no files.
	"dataset":       "analysis segment sanitize spell document extract chunk ingest embed vector vector/faiss fusion",
	"datasetmcp":    "dataset mcpserver schema",
	"datasetsearch": "analysis chunk dataset document extract match passage query retrieval sanitize search segment spell",

	// Names of sources, and the configuration of the bridge: the one package below
	// cli that knows its keys.
	"source":     "document repository site",
	"repository": "sanitize",
	"fessconfig": "config document fess content fetch httpguard source",

	// A search service restricted to some labels.
	"search/scope":     "document query search",
	"search/federated": "analysis chunk document passage query relevance search",

	// The knowledge base.
	"kb":       "access audit document filelock index index/queue ingest query sanitize search",
	"kbserver": "httpguard kb",

	// The web page of a server.
	"console": "httpguard",

	// The client of the engine API, and the MCP tools over any base.
	"kbclient": "kb compact httpclient sanitize",
	"kbmcp":    "access audit document kb mcpserver httpguard sanitize",

	// What the servers serve: the data folder, the service of serve over it, and the
	// bridge. They connect the packages above and know no flags.
	"fessbridge": "analysis content document fess fessconfig searchmcp fetch job mcpserver query search",
	"datafolder": "document index opensearch indexing ingest kb embed embed/bert embed/minilm embed/open repository sanitize search search/scope " +
		"site terminal",
	"serving": "access audit metrics query users datafolder document source repository site dataset indexing search search/federated search/scope searchmcp fessserver job kb kbmcp kbserver console clients " +
		"mcpserver httpguard terminal",

	// What goes wrong on the machine of a user: it asks the packages above.
	"doctor": "clients config configfile datafolder document embed fess fessconfig httpclient httpguard index indexing ingest " +
		"mcpclient mcpsettings repository sanitize search site source terminal",

	// The packages of a release; no program of the release imports it.
	"release": "", "release/make": "release",

	// The command line may import everything.
	"cli": "*",

	// Test support.
	"search/searchtest": "query search document",
	"fess/fesstest":     "fess/wire search document",
	"mcpserver/mcptest": "", "terminal/terminaltest": "",
	"kb/kbtest": "access document kb embed",

	// A fake Fess server for manual tests.
	"fess/fesstest/fakefess": "fess/fesstest search/searchtest document",
}

// restricted says which packages may import a module or package from outside.
var restricted = map[string]string{
	"github.com/modelcontextprotocol/go-sdk": "mcpserver",
	"github.com/prometheus":                  "metrics",
	"modernc.org/sqlite":                     "index/database",
	"github.com/go-jose/go-jose":             "oauth",
	"github.com/klauspost/compress":          "index",
	"database/sql":                           "index index/database index/queue index/segments index/vectors",
	"net/http":                               "audit metrics httpclient httpguard oauth users mcpserver fess fessserver kbserver console fetch site mcpclient invoke cli serving fessbridge fess/fesstest fess/fesstest/fakefess mcpserver/mcptest embed/remote embed/minilm/make kbclient kbmcp opensearch doctor",
	"testing":                                "search/searchtest kb/kbtest fess/fesstest mcpserver/mcptest terminal/terminaltest",
	"flag":                                   "", // cli/flags.go declares the flags
	"os/signal":                              "cmd/knowhow cmd/mcp-fess cmd/mcp-bridge",
}

// pure lists the packages that must not open files or sockets.
var pure = []string{"errkind", "document", "search", "extract", "extract/plain", "extract/charset", "extract/unpack",
	"extract/office", "extract/markup", "extract/mail", "extract/data", "extract/code", "extract/pdf",
	"extract/pdf/cid", "extract/pdf/cos", "ignore", "chunk", "analysis", "query", "passage", "relevance", "spell",
	"compact", "sanitize", "schema", "skill",
	"embed", "embed/safetensors", "embed/tokenizer", "embed/kernel", "vector", "vector/faiss", "fusion"}

// TestDeps checks the imports of every package against deps, restricted and
// pure.
func TestDeps(t *testing.T) {
	seen := map[string]bool{}
	// The test reads the files itself instead of using go list, so that the
	// test cache is invalidated when one changes.
	for file, src := range goFiles(t) {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "bench/") { // not part of the program
			continue
		}
		name := strings.TrimPrefix(path.Dir(file), "internal/")
		if _, ok := deps[name]; !ok && !strings.HasPrefix(name, "cmd/") {
			t.Errorf("%s: package %s is not in deps", file, name)
		}
		seen[name] = true
		checkImports(t, file, src, name)
	}
	for name := range deps {
		if !seen[name] {
			t.Errorf("deps has package %s, which does not exist", name)
		}
	}
}

// checkImports reports the imports of one file that the policy forbids.
func checkImports(t *testing.T, file string, src []byte, name string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, src, parser.ImportsOnly)
	if err != nil {
		t.Error(err)
		return
	}
	for _, spec := range f.Imports {
		imp, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if in, ours := strings.CutPrefix(imp, module+"/internal/"); ours {
			allow := deps[name]
			switch {
			case in == "errkind", allow == "*":
			case strings.HasPrefix(name, "cmd/"):
				if in != "cli" {
					t.Errorf("%s: cmd must not import %s, only cli", file, in)
				}
			case !slices.Contains(strings.Fields(allow), in):
				t.Errorf("%s: %s must not import %s", file, name, in)
			}
		}
		for mod, allowed := range restricted {
			if (imp == mod || strings.HasPrefix(imp, mod+"/")) && !slices.Contains(strings.Fields(allowed), name) {
				t.Errorf("%s: %s must not import %s; only %s may", file, name, imp, allowed)
			}
		}
		if slices.Contains(pure, name) && (imp == "os" || imp == "net" || strings.HasPrefix(imp, "os/")) {
			t.Errorf("%s: %s must not open files or sockets and so must not import %s", file, name, imp)
		}
	}
}

// setting matches a flag or a key of the bridge's configuration in a message.
var setting = regexp.MustCompile(`(^|[\s("'])--[a-z]|\b(contentFetch|fessAuth|httpTransport)\.[a-z]|\b(security|timeouts|limits|logging|tls)\.[a-z]+[A-Z]|` +
	`\bfessBaseUrl\b|\blogging\.dir\b|\b(KNOWHOW|MCP_BRIDGE|FESS)_(TOKEN|DATA|URL|API_TOKEN)\b`)

// namesSettings are the packages that may name flags and keys: the command line,
// the configuration of the bridge with what it configures, what contains command lines
// (skills, the table of clients, the doctor, the packages of a release), and the package
// that runs git.
var namesSettings = []string{"cli", "fessconfig", "fessbridge", "skill", "clients", "doctor", "release", "repository"}

// TestSettingsAreNamedAtTheEdge checks that no other package names a flag or a
// key: its errors have an errkind.Reason, to which the edge adds the name.
func TestSettingsAreNamedAtTheEdge(t *testing.T) {
	for file, src := range goFiles(t) {
		name := strings.TrimPrefix(path.Dir(file), "internal/")
		if strings.HasSuffix(file, "_test.go") || slices.Contains(namesSettings, name) ||
			strings.HasPrefix(name, "cmd/") || strings.Contains(file, "test/") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, file, src, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING && setting.MatchString(lit.Value) {
				t.Errorf("%s: %s names a setting", fset.Position(lit.Pos()), lit.Value)
			}
			return true
		})
	}
}
