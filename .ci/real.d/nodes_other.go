//go:build !linux

package main

import (
	"context"
	"fmt"
)

func runCluster(context.Context, string, string, []string) error {
	return fmt.Errorf("%w: network namespaces need Linux", errNotAllowed)
}

func runInside(context.Context, string, []string) error { return errNotAllowed }
