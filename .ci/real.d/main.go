// Command real runs real servers for tests; .ci/real-fess, .ci/real-opensearch
// and .ci/real-cluster build and run it. Its arguments are a folder for this run,
// which it removes, the name of the script, and the script's arguments. Jars come
// from Maven Central and are kept in the user's cache folder. Each run starts
// with empty indexes.
//
// real-fess tests knowhow with Fess 15.4.0 and OpenSearch 3.4.0. Maven Central
// does not have Fess's four OpenSearch plugins; see index.go for the
// consequences. The checks are Go tests named TestRealFess*, which get the
// addresses of the server in the environment variables that check sets, and
// scripts in acceptance/.
//
// real-opensearch runs a command with OpenSearch 2.19.1; see cluster.go.
// real-cluster runs one with three nodes that can fail; see nodes.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// errMissing means that the machine lacks a program, and errNotAllowed that this
// user or system cannot run a check.
var (
	errMissing    = errors.New("missing program")
	errNotAllowed = errors.New("not possible here")
)

func main() {
	// The servers end with the thread that started them; see endWithParent.
	runtime.LockOSThread()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run executes the command line and removes the work folder.
func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("usage: .ci/real-fess, .ci/real-opensearch or .ci/real-cluster")
	}
	work, script, args := args[0], args[1], args[2:]
	defer os.RemoveAll(work)
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "knowhow-ci", script)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	switch script {
	case "real-fess":
		if err = runFess(ctx, work, cache, args); errors.Is(err, errMissing) {
			fmt.Println("real-fess: skipped:", err)
			return nil
		}
	case "real-opensearch":
		err = runOpenSearch(ctx, work, cache, args)
	case "real-cluster":
		err = runCluster(ctx, work, cache, args)
		if errors.Is(err, errNotAllowed) || errors.Is(err, errMissing) && !inCI() {
			fmt.Println("real-cluster: skipped:", err)
			return nil
		}
	case "inside":
		return runInside(ctx, work, args)
	default:
		err = errors.New("unknown script")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", script, err)
	}
	return nil
}

// runFess starts Fess and runs the checks, or waits if args is "serve".
func runFess(ctx context.Context, work, cache string, args []string) error {
	serve := len(args) == 1 && args[0] == "serve"
	if len(args) > 0 && !serve {
		return errors.New("usage: .ci/real-fess [serve]")
	}
	began := time.Now()
	// Fess 15.4 and OpenSearch 3 require Java 21.
	debian := filepath.Join(cache, "debian-13")
	java, err := findJava(ctx, 21, filepath.Join(debian, "java"), func() error {
		return pack(debian, func(dir string) error { return getJava(ctx, dir) })
	})
	if err != nil {
		return err
	}
	jars, err := install(ctx, cache, java, "boot", "fess", "opensearch")
	if err != nil {
		return err
	}
	fmt.Printf("Java in %s, jars in %s, after %v\n", java, jars, since(began))
	if !serve {
		if err := build(ctx, work); err != nil {
			return err
		}
	}
	s := &site{work: work, java: java, jars: jars}
	defer func() { s.stop() }()
	if err := s.start(ctx); err != nil {
		return err
	}
	if err := s.load(ctx); err != nil {
		return fmt.Errorf("loading the corpus: %w", err)
	}
	fmt.Printf("Fess runs at %s, OpenSearch at %s, after %v\n", s.fessURL, s.engineURL, since(began))
	if serve {
		fmt.Printf("administrator's token: %s\ntoken of a role that sees nothing: %s\n", adminToken, nobodyToken)
		<-ctx.Done()
		return nil
	}
	if err := s.checkAll(ctx); err != nil {
		return err
	}
	fmt.Printf("all checks passed after %v\n", since(began))
	return nil
}

// build builds the program and the tests, so that all checks use the same state
// of the sources.
func build(ctx context.Context, work string) error {
	env := []string{"CGO_ENABLED=0"}
	if err := command(ctx, env, "go", "build", "-o", filepath.Join(work, "knowhow"), "./cmd/knowhow"); err != nil {
		return err
	}
	for _, name := range packages {
		if err := command(ctx, env, "go", "test", "-c", "-o", filepath.Join(work, name+".test"), "./internal/"+name); err != nil {
			return err
		}
	}
	return nil
}

// packages are the packages with checks, in order. The first sends few requests,
// the others many, from which Fess may learn words.
var packages = [...]string{"cli", "fess", "fessbridge"}

// checkAll runs the checks with each configuration of the server.
func (s *site) checkAll(ctx context.Context) error {
	if err := s.check(ctx, "plain"); err != nil {
		return err
	}
	// This server sends the texts and the labels of its documents.
	s.fess.stop()
	if err := s.startFess(ctx, "-Dfess.config.query.additional.response.fields=content,label",
		"-Dfess.config.query.additional.api.response.fields=content,label"); err != nil {
		return err
	}
	if err := s.check(ctx, "content"); err != nil {
		return err
	}
	s.engine.stop()
	return s.check(ctx, "down")
}

// check runs the tests with one configuration of the server.
func (s *site) check(ctx context.Context, setup string) error {
	began := time.Now()
	for _, name := range packages {
		fmt.Printf("== checks of %s, server %s\n", name, setup)
		args := []string{"-test.run=^TestRealFess", "-test.timeout=10m"}
		if name != "cli" {
			args = append(args, "-test.v") // the output of the scripts is long and needed only if they fail
		}
		cmd := exec.CommandContext(ctx, s.path(name+".test"), args...)
		cmd.Dir = filepath.Join("internal", name)
		cmd.Env = append(os.Environ(), "KNOWHOW_REAL_FESS="+s.fessURL, "KNOWHOW_REAL_FESS_SETUP="+setup,
			"KNOWHOW_REAL_FESS_NOBODY="+nobodyToken, "KNOWHOW_PROGRAM="+s.path("knowhow"))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("checks of %s, server %s: %w", name, setup, err)
		}
	}
	fmt.Printf("== server %s checked in %v\n", setup, since(began))
	return nil
}

func since(t time.Time) time.Duration { return time.Since(t).Round(time.Second) }
