package cli_test

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"log"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/knowhow-mcp/knowhow/internal/cli"
)

func TestMain(m *testing.M) {
	if os.Getenv("TEST_PREPARE") != "" { // the process of TestPrepare needs no programs, and would leave them behind
		os.Exit(m.Run())
	}
	testscript.Main(tidy{m}, map[string]func(){
		"knowhow":  func() { program(cli.Env{Program: "knowhow", Lookup: os.LookupEnv}) },
		"mcp-fess": func() { program(cli.Env{Program: "mcp-fess", Command: "fess", Lookup: os.LookupEnv}) },
		"mcpchat":  mcpchat,

		"mcp-bridge": mcpBridge,
		"fakemcp":    fakemcp,
		"ask":        ask,
	})
}

// tidy runs tests with a folder of their own for temporary files, because each
// sync leaves the file that it locks. It runs more scripts at the same time
// than there are processors, because scripts mostly wait.
type tidy struct{ *testing.M }

func (m tidy) Run() int {
	dir, err := os.MkdirTemp("", "knowhow-cli-test")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	os.Setenv("TMPDIR", dir)
	debug.SetGCPercent(400)                                                                  // heaps are small
	if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil { // the command line takes precedence
		log.Fatal(err)
	}
	return m.M.Run()
}

// program does what the mains do, but for signals.
func program(env cli.Env) {
	stdout := cli.Prepare()
	os.Exit(cli.Main(context.Background(), os.Args[1:], env, os.Stdin, stdout, os.Stderr))
}

// TestScript runs the scripts in testdata/script against the whole program.
// Those named at_* are the acceptance tests of the bridge. Besides the usual
// commands there are
//
//	status N PROGRAM ARG...   run a program that must end with this status
//	fakefess [OPTION...]      start a fake Fess server and set FESS_URL
//	webserver DIR             serve the files of a folder and set WEB_URL; see serveWeb
//	evilweb                   serve documents that no server should send and set EVIL_URL; see misdeeds
//	checkprogress TOKEN N     stdout has N progress notifications or more, see there
//	fessengine STATE          set the state of the fake's search engine
//	fessrequests FILE         write the requests that the fake got to a file
//	checkledger N             the answers in stdout contain the long ledger's text in N chunks
//	glob N PATTERN            so many files match; the first is FILE from then on
//	oldfiles FILE...          create files that were last changed long ago
//	certificates NAME...      create certificates NAME.crt with keys NAME.key, see makeCertificates
//	envfile FILE              replace $NAME in a file by the script's variables
//	exec mcpchat FILE PROGRAM ARG...   talk to a server, see mcpchat
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *cli.Update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("KNOWHOW_EMBEDDER", "none") // see serve_meaning
			hostile, err := filepath.Abs("../extract/pdf/testdata")
			if err != nil {
				return err
			}
			documents, err := filepath.Abs("../extract/testdata/documents")
			if err != nil {
				return err
			}
			env.Setenv("HOSTILE", hostile)            // see serve_hostile
			env.Setenv("DOCUMENTS", documents)        // see serve_documents
			env.Setenv("GORACE", "atexit_sleep_ms=0") // the race detector would have each program wait a second
			if err := setStore(env); err != nil {
				return err
			}
			env.Values[fakeKey{}] = &fakeFess{}
			env.Values[bridgeKey{}] = &runningBridge{}
			return nil
		},
		Condition: func(cond string) (bool, error) {
			if cond == "opensearch" {
				return os.Getenv(serverVariable) != "", nil
			}
			return bridgeCondition(cond)
		},
		Cmds: bridgeCommands(map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":        runStatus,
			"fakefess":      startFake,
			"webserver":     serveWeb,
			"evilweb":       serveMisdeeds,
			"checkprogress": checkProgress,
			"fessengine":    setFakeEngine,
			"fessrequests":  writeFakeRequests,
			"checkledger":   checkLedger,
			"glob":          globFiles,
			"oldfiles":      makeOldFiles,
			"certificates":  makeCertificates,
			"envfile":       expandFile,
		}),
	})
}

// serverVariable names the environment variable with the URL of an OpenSearch
// server for tests; see .ci/real-opensearch.
const serverVariable = "KNOWHOW_TEST_OPENSEARCH"

// setStore sets STORE to the address of a store that does not exist, if there is
// a server, and deletes the store afterwards.
func setStore(env *testscript.Env) error {
	server := os.Getenv(serverVariable)
	if server == "" {
		return nil
	}
	prefix := "test-" + strings.ToLower(rand.Text()[:12])
	env.Setenv("STORE", "opensearch+"+server+"/"+prefix)
	env.Defer(func() {
		req, err := http.NewRequest(http.MethodDelete,
			server+"/"+prefix+"-documents-1,"+prefix+"-chunks-1,"+prefix+"-state", nil)
		if err == nil {
			if resp, err := http.DefaultClient.Do(req); err == nil {
				resp.Body.Close()
			}
		}
	})
	return nil
}

// runStatus runs a program and checks its exit status.
func runStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N PROGRAM ARG...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status of %q = %d, want %d", args[1:], got, want)
	}
}
