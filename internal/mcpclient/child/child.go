// Package child starts programs so that nothing of them survives: with all that
// they start in turn they form a family, which is ended as one, also when their
// leader ends before the rest, and when we are killed. Package mcpclient runs
// MCP servers with it.
package child

import (
	"fmt"
	"strings"
)

// notFound is the error of a command that is nowhere.
func notFound(name string) error {
	return fmt.Errorf("the command %q was not found; install it, or write its full path into \"command\"", name)
}

// lookIn returns the value of a variable in an environment, the last one where
// it stands there more than once.
func lookIn(env []string, name string, equal func(a, b string) bool) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && equal(k, name) {
			return v
		}
	}
	return ""
}
