package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestReferenceScripts runs the scripts in testdata/reference with the reference
// servers of MCP, which .ci/bridge installs below the folder that
// KNOWHOW_REFERENCE_SERVERS names. The scripts have
//
//	SERVERS     the folder of the packages
//	VALIDATOR   a Python with the validator of the Agent Skills standard
//
// and the commands of [TestScript] for bridges.
func TestReferenceScripts(t *testing.T) {
	dir := os.Getenv("KNOWHOW_REFERENCE_SERVERS")
	if dir == "" {
		t.Skip("no reference servers: .ci/bridge installs them")
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/reference",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir+"/home")
			env.Setenv("KNOWHOW_EMBEDDER", "none") // see serve_meaning
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			env.Setenv("SERVERS", filepath.Join(dir, "node_modules", "@modelcontextprotocol"))
			env.Setenv("VALIDATOR", filepath.Join(dir, "venv", "bin", "python"))
			env.Values[bridgeKey{}] = &runningBridge{}
			return nil
		},
		Cmds: bridgeCommands(scriptCommands{"status": runStatus, "glob": globFiles}),
	})
}
