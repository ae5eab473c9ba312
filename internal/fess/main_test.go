package fess_test

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain makes the garbage collector run less often. The heaps of these tests
// are small, and it would take up to a third of their time.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}
