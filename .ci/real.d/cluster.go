package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// A cluster describes OpenSearch nodes that run in one JVM.
type cluster struct {
	dir       string // folder of the nodes and of the log
	java      string // home of the Java
	classPath []string
	plugins   string   // class names separated by commas, or ""
	settings  string   // lines added to each node's opensearch.yml
	heap      string   // largest heap, as in -Xmx
	options   []string // more options of the JVM
	usual     bool     // with the compiler, the garbage collector and the files of an ordinary server, which starts more slowly
	nodes     int
	port      int    // HTTP port of the first node; 0 means a free one
	host      string // address that the nodes listen on; "" means loopback
}

// The runner of OpenSearch uses HTTP ports up to lastPort only.
const firstPort, lastPort = 9210, 9299

// confDir returns the folder of a node's configuration; the first node is 1.
func (c *cluster) confDir(node int) string {
	return filepath.Join(c.dir, fmt.Sprintf("node_%d", node), "config")
}

// start starts the nodes and waits until all have joined a cluster that is
// green or yellow. It returns their URLs. The nodes use consecutive HTTP ports,
// and the ports of the transport are 100 higher.
func (c *cluster) start(ctx context.Context) (p *process, urls []string, err error) {
	port := c.port
	if port == 0 {
		if port, err = freePorts(c.nodes); err != nil {
			return nil, nil, err
		}
	} else if port < 1024 || port+c.nodes-1 > lastPort || !allFree(port, c.nodes) {
		return nil, nil, fmt.Errorf("starting OpenSearch: the ports %d to %d and those 100 higher must be free, and the largest at most %d",
			port, port+c.nodes-1, lastPort)
	}
	name := fmt.Sprintf("knowhow-ci-%d-%d", os.Getpid(), port) // tells it from other clusters
	discovery := "discovery.type: single-node\n"
	if c.nodes > 1 {
		var seeds, names []string
		for i := range c.nodes {
			seeds = append(seeds, fmt.Sprintf("127.0.0.1:%d", port+i+100))
			names = append(names, fmt.Sprintf("Node %d", i+1)) // as the runner names them
		}
		discovery = fmt.Sprintf("discovery.seed_hosts: [%s]\ncluster.initial_cluster_manager_nodes: [%s]\n", strings.Join(seeds, ", "), strings.Join(names, ", "))
	}
	for i := range c.nodes {
		urls = append(urls, fmt.Sprintf("http://127.0.0.1:%d", port+i))
		err := write(filepath.Join(c.confDir(i+1), "opensearch.yml"), fmt.Appendf(nil, `network.host: %s
transport.port: %d
cluster.routing.allocation.disk.threshold_enabled: false
%s%s`, cmp.Or(c.host, "127.0.0.1"), port+i+100, discovery, c.settings))
		if err != nil {
			return nil, nil, err
		}
	}
	jvm, files := append(quick[:], "-Xms256m"), "niofs"
	if c.usual {
		jvm, files = []string{"-XX:+UseG1GC", "-Xms" + c.heap}, "hybridfs"
	}
	args := append(jvm, "-Xmx"+c.heap, "--add-opens=java.base/java.io=ALL-UNNAMED")
	args = append(append(args, c.options...), "-cp", strings.Join(c.classPath, string(filepath.ListSeparator)), "org.codelibs.opensearch.runner.OpenSearchRunner",
		"-basePath", c.dir, "-numOfNode", fmt.Sprint(c.nodes), "-baseHttpPort", fmt.Sprint(port-1), "-clusterName", name, "-indexStoreType", files)
	if c.plugins != "" {
		args = append(args, "-pluginTypes", c.plugins)
	}
	p, err = startProcess("OpenSearch", filepath.Join(c.dir, "opensearch.log"), c.dir, filepath.Join(c.java, "bin", "java"), args...)
	if err != nil {
		return nil, nil, err
	}
	for _, url := range urls {
		url = fmt.Sprintf("%s/_cluster/health?wait_for_status=yellow&wait_for_nodes=%d&timeout=5s", url, c.nodes)
		if err := p.ready(ctx, url, func(body []byte) bool {
			var health struct {
				Name string `json:"cluster_name"`
			}
			return json.Unmarshal(body, &health) == nil && health.Name == name
		}); err != nil {
			p.stop()
			return nil, nil, err
		}
	}
	return p, urls, nil
}

// freePorts returns the first of n consecutive free ports. It begins at a random
// one, because runs that start at the same time see the same free ports.
func freePorts(n int) (int, error) {
	count := lastPort - firstPort + 1 - (n - 1)
	first := rand.IntN(count)
	for i := range count {
		if port := firstPort + (first+i)%count; allFree(port, n) {
			return port, nil
		}
	}
	return 0, fmt.Errorf("starting OpenSearch: not %d free ports from %d to %d", n, firstPort, lastPort)
}

// allFree reports whether n consecutive ports of the loopback address, and
// those 100 higher, can be listened on.
func allFree(port, n int) bool {
	for p := port; p < port+n; p++ {
		for _, p := range []int{p, p + 100} {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			if err != nil || l.Close() != nil {
				return false
			}
		}
	}
	return true
}

// runOpenSearch starts OpenSearch 2.19, runs a command while it runs, and
// returns the command's error.
func runOpenSearch(ctx context.Context, work, cache string, args []string) error {
	flags := flag.NewFlagSet("real-opensearch", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	withoutKNN := flags.Bool("no-knn", false, "without the k-NN plugin")
	nodes := flags.Int("nodes", 1, "number of nodes, 1 to 5")
	usual := flags.Bool("usual", false, "with the Java settings of an ordinary server")
	port := flags.Int("port", 0, "HTTP port of the first node; 0 means a free one")
	all := flags.Bool("all", false, "listen on all addresses of the machine")
	if err := flags.Parse(args); err != nil {
		return fmt.Errorf("%w; usage: .ci/real-opensearch [-no-knn] [-nodes N] [-port PORT] [-all] [-usual] [COMMAND [ARGUMENT ...]]", err)
	}
	if *nodes < 1 || *nodes > 5 {
		return fmt.Errorf("-nodes %d: must be 1 to 5", *nodes)
	}
	began := time.Now()
	java, err := findJava(ctx, 17, "/usr", func() error { return aptInstall(ctx, "default-jre-headless") })
	if err != nil {
		return err
	}
	jars, err := install(ctx, cache, java, "knn", "opensearch2")
	if err != nil {
		return err
	}
	c := &cluster{dir: filepath.Join(work, "opensearch"), java: java, nodes: *nodes, port: *port, usual: *usual, heap: "640m",
		classPath: []string{filepath.Join(jars, "opensearch2", "*")}}
	if *all {
		c.host = "0.0.0.0"
	}
	if *nodes > 1 {
		c.heap = "1g"
	}
	if *usual {
		c.heap = "2g"
	}
	if !*withoutKNN {
		c.classPath = append(c.classPath, filepath.Join(jars, "knn", "*"))
		c.plugins = "org.opensearch.knn.plugin.KNNPlugin"
	}
	server, urls, err := c.start(ctx)
	if err != nil {
		return err
	}
	defer server.stop()
	fmt.Fprintf(os.Stderr, "OpenSearch runs at %s after %v\n", strings.Join(urls, " "), since(began))
	if flags.NArg() == 0 {
		select {
		case <-ctx.Done():
			return nil
		case <-server.done:
			return errors.New("OpenSearch ended")
		}
	}
	cmd := exec.CommandContext(ctx, flags.Arg(0), flags.Args()[1:]...)
	cmd.Env = append(os.Environ(), "KNOWHOW_TEST_OPENSEARCH="+urls[0], "KNOWHOW_TEST_OPENSEARCH_NODES="+strings.Join(urls, ","))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", flags.Arg(0), err)
	}
	return nil
}
