// Package child starts programs and makes sure that none of their processes
// survive. A program and its descendants form a family, which is ended as a
// whole, also when its leader ends first, and when this program is killed.
// Package mcpclient runs MCP servers with it.
package child

import (
	"fmt"
	"strings"
)

// notFound returns the error of a command that was not found.
func notFound(name string) error {
	return fmt.Errorf("the command %q was not found; install it, or write its full path into \"command\"", name)
}

// lookIn returns the value of a variable in an environment, the last one if
// there are several.
func lookIn(env []string, name string, equal func(a, b string) bool) string {
	for i := len(env) - 1; i >= 0; i-- {
		if k, v, ok := strings.Cut(env[i], "="); ok && equal(k, name) {
			return v
		}
	}
	return ""
}
