// Package terminaltest makes pseudo terminals for tests. They exist on Linux only.
package terminaltest
