package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A node is an OpenSearch server in its own network namespace, with its data on
// its own file system.
type node struct {
	number  int
	dir     string // has data, on a file system of nodeDisk bytes
	address string
	space   *process // keeps the namespace
	server  *process // nil until it is started
	starts  int
}

const (
	nodeCount = 3
	nodeDisk  = 256 << 20
	nodeHeap  = "384m"
	nodePort  = 9201
	filled    = 98 // percent of the disk after fill
)

// settings are those of all nodes. The limits of disks are checked every ten
// seconds, which is the least that OpenSearch allows. A node that does not answer
// is removed after about ten seconds instead of thirty.
const settings = `cluster.info.update.interval: 10s
cluster.routing.allocation.disk.watermark.low: 80%
cluster.routing.allocation.disk.watermark.high: 88%
cluster.routing.allocation.disk.watermark.flood_stage: 93%
cluster.fault_detection.follower_check.timeout: 3s
cluster.fault_detection.leader_check.timeout: 3s
`

// runCluster prepares what needs the network of the machine, and runs
// runInside in its own namespaces for the network and the mounts.
func runCluster(ctx context.Context, work, cache string, args []string) error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("%w: network namespaces need root", errNotAllowed)
	}
	cache = filepath.Join(filepath.Dir(cache), "real-opensearch")
	java, err := findJava(ctx, 17, "/usr", func() error { return aptInstall(ctx, "default-jre-headless") })
	if err != nil {
		return err
	}
	for _, program := range []string{"ip", "nsenter", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w: %s", errMissing, program)
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	jars, err := install(ctx, cache, java, "knn", "opensearch2")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(work, "real"), append([]string{work, "inside", java, jars}, args...)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	cmd.SysProcAttr = ownNamespaces()
	err = cmd.Start()
	if errors.Is(err, syscall.EPERM) {
		return fmt.Errorf("%w: no permission to make namespaces", errNotAllowed)
	}
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// runInside starts the nodes and runs a command. It is in namespaces of its own,
// so nothing remains of what it changes and starts.
func runInside(ctx context.Context, work string, args []string) error {
	began := time.Now()
	java, jars, args := args[0], args[1], args[2:]
	if len(args) == 0 {
		args = []string{"sh"}
	}
	if err := runAll("mount -t proc proc /proc", "ip link set lo up", "ip link add nodes type bridge", "ip addr add 198.51.100.254/24 dev nodes", "ip link set nodes up"); err != nil {
		return err
	}
	var nodes []*node
	hosts := "127.0.0.1 localhost\n"
	var urls []string
	for i := range nodeCount {
		n := &node{number: i + 1, dir: filepath.Join(work, fmt.Sprint("node", i+1)), address: fmt.Sprint("198.51.100.", i+1)}
		nodes = append(nodes, n)
		hosts += n.address + " opensearch\n"
		urls = append(urls, fmt.Sprintf("http://%s:%d", n.address, nodePort))
		if err := n.prepare(); err != nil {
			return err
		}
	}
	if err := write(filepath.Join(work, "hosts"), []byte(hosts)); err != nil {
		return err
	}
	if err := runAll("mount --bind " + filepath.Join(work, "hosts") + " /etc/hosts"); err != nil {
		return err
	}
	for _, n := range nodes {
		if err := n.start(java, jars); err != nil {
			return err
		}
	}
	for i, n := range nodes {
		if err := n.server.ready(ctx, urls[i]+"/_cluster/health?wait_for_nodes=3&timeout=5s", func(body []byte) bool {
			var health struct {
				TimedOut bool `json:"timed_out"`
			}
			return json.Unmarshal(body, &health) == nil && !health.TimedOut
		}); err != nil {
			return err
		}
	}
	fmt.Fprintf(os.Stderr, "OpenSearch runs at %s after %v\n", strings.Join(urls, " "), since(began))

	// Faults are made in this goroutine, because servers end with the thread that
	// started them.
	faults := make(chan func())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, fault, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		i, err := strconv.Atoi(name)
		if r.Method != http.MethodPost || err != nil || i < 1 || i > len(nodes) {
			http.Error(w, "want POST /NODE/FAULT", http.StatusBadRequest)
			return
		}
		done := make(chan error)
		faults <- func() { done <- nodes[i-1].fault(fault, nodes, java, jars) }
		if err := <-done; err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})}
	go control.Serve(listener)         // ends with this process
	temp := filepath.Join(work, "tmp") // removed with the folder if the command is killed
	if err := os.Mkdir(temp, 0o777); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "KNOWHOW_TEST_CLUSTER=http://"+listener.Addr().String(), "KNOWHOW_TEST_OPENSEARCH_NODES="+strings.Join(urls, ","))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case f := <-faults:
			f()
		case err := <-ended:
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return nil
		}
	}
}

// prepare makes the namespace, the file system and the configuration of a node.
func (n *node) prepare() (err error) {
	if err := os.MkdirAll(filepath.Join(n.dir, "node_1", "data"), 0o755); err != nil {
		return err
	}
	if n.space, err = startIn(newNetwork(), "the namespace of a node", filepath.Join(n.dir, "space.log"), n.dir, "sleep", "infinity"); err != nil {
		return err
	}
	link, pid := n.link(), n.space.cmd.Process.Pid
	if err := runAll(
		fmt.Sprintf("mount -t tmpfs -o size=%d tmpfs %s", nodeDisk, filepath.Join(n.dir, "node_1", "data")),
		fmt.Sprintf("ip link add %s type veth peer name eth0 netns %d", link, pid),
		fmt.Sprintf("ip link set %s master nodes up", link),
		n.inside("ip link set lo up"), n.inside("ip addr add %s/24 dev eth0", n.address), n.inside("ip link set eth0 up"),
	); err != nil {
		return err
	}
	var all []string
	for i := range nodeCount {
		all = append(all, fmt.Sprint("198.51.100.", i+1))
	}
	list := strings.Join(all, ", ")
	return write(filepath.Join(n.dir, "node_1", "config", "opensearch.yml"), fmt.Appendf(nil,
		"network.host: %s\ntransport.port: 9300\ndiscovery.seed_hosts: [%s]\ncluster.initial_cluster_manager_nodes: [%s]\n%s", n.address, list, list, settings))
}

// link returns the name of the interface of the bridge that leads to a node.
func (n *node) link() string { return fmt.Sprint("node", n.number) }

// inside returns a command that runs in the network namespace of a node.
func (n *node) inside(format string, args ...any) string {
	return fmt.Sprintf("nsenter -t %d -n ", n.space.cmd.Process.Pid) + fmt.Sprintf(format, args...)
}

// start starts the server of a node.
func (n *node) start(java, jars string) (err error) {
	n.starts++
	args := append([]string{"-t", fmt.Sprint(n.space.cmd.Process.Pid), "-n", filepath.Join(java, "bin", "java")}, quick[:]...)
	args = append(args, "-Xms128m", "-Xmx"+nodeHeap, "--add-opens=java.base/java.io=ALL-UNNAMED",
		"-cp", filepath.Join(jars, "opensearch2", "*")+":"+filepath.Join(jars, "knn", "*"), "org.codelibs.opensearch.runner.OpenSearchRunner",
		"-basePath", n.dir, "-numOfNode", "1", "-baseHttpPort", fmt.Sprint(nodePort-1), "-clusterName", "knowhow-ci", "-indexStoreType", "niofs",
		"-pluginTypes", "org.opensearch.knn.plugin.KNNPlugin")
	n.server, err = startProcess(fmt.Sprint("node ", n.number), filepath.Join(n.dir, fmt.Sprintf("start%d.log", n.starts)), n.dir, "nsenter", args...)
	return err
}

// fault makes or ends a fault of a node.
func (n *node) fault(name string, nodes []*node, java, jars string) error {
	file := filepath.Join(n.dir, "node_1", "data", "filled")
	switch name {
	case "kill":
		n.server.kill()
		return nil
	case "stop":
		n.server.stop()
		return nil
	case "start":
		n.server.kill()
		return n.start(java, jars)
	case "isolate", "heal":
		// Packets go to a hardware address that no node has.
		var commands []string
		for _, other := range nodes {
			if other == n {
				continue
			}
			for _, pair := range [][2]*node{{n, other}, {other, n}} {
				if name == "isolate" {
					commands = append(commands, pair[0].inside("ip neigh replace %s lladdr 02:00:00:00:00:01 dev eth0 nud permanent", pair[1].address))
				} else {
					commands = append(commands, pair[0].inside("ip neigh flush to %s nud permanent", pair[1].address))
				}
			}
		}
		if name == "heal" {
			commands = append(commands, "ip link set "+n.link()+" up")
		}
		return runAll(commands...)
	case "unplug":
		return runAll("ip link set " + n.link() + " down")
	case "fill":
		return fill(file)
	case "free":
		return os.Remove(file)
	}
	return errors.New("no such fault: see .ci/real-cluster")
}

// fill writes a file that fills a part of its file system.
func fill(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer f.Close()
	block := make([]byte, 1<<20)
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(name, &s); err != nil {
			return err
		}
		left := int64(s.Bavail)*s.Bsize - int64(s.Blocks)*s.Bsize*(100-filled)/100
		if left <= 0 {
			return f.Close()
		}
		if _, err := f.Write(block[:min(left, int64(len(block)))]); err != nil {
			return err
		}
	}
}

// runAll runs commands, whose arguments have no spaces, up to the first that
// fails.
func runAll(commands ...string) error {
	for _, c := range commands {
		args := strings.Fields(c)
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", c, err, out)
		}
	}
	return nil
}
