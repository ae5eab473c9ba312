package main

import (
	"archive/zip"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// A site is a Fess server with its search engine.
type site struct {
	work string // folder of this run
	java string // home of the Java
	jars string // folder returned by install

	engine, fess       *process
	engineURL, fessURL string
}

// start starts both servers.
func (s *site) start(ctx context.Context) error {
	if err := s.prepare(); err != nil {
		return fmt.Errorf("preparing Fess: %w", err)
	}
	if err := s.startEngine(ctx); err != nil {
		return err
	}
	return s.startFess(ctx)
}

// stop stops both servers.
func (s *site) stop() {
	s.fess.stop()
	s.engine.stop()
}

func (s *site) path(name string) string { return filepath.Join(s.work, filepath.FromSlash(name)) }

// quick are settings for a JVM that runs only for minutes: it compiles less,
// and collects garbage on one thread.
var quick = [...]string{"-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"}

// startEngine starts OpenSearch.
func (s *site) startEngine(ctx context.Context) error {
	c := s.cluster()
	var urls []string
	var err error
	if s.engine, urls, err = c.start(ctx); err != nil {
		return err
	}
	s.engineURL = urls[0]
	return nil
}

// cluster returns the description of the search engine.
func (s *site) cluster() *cluster {
	return &cluster{dir: s.path("engine"), java: s.java, nodes: 1, heap: "640m", options: []string{"--enable-native-access=ALL-UNNAMED"},
		classPath: []string{filepath.Join(s.jars, "opensearch", "*")}, settings: "action.auto_create_index: \"-*\"\n"}
}

// startFess starts Fess on a free port, the same one each time.
func (s *site) startFess(ctx context.Context, settings ...string) error {
	if s.fessURL == "" {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		s.fessURL = "http://" + l.Addr().String()
		if err := l.Close(); err != nil {
			return err
		}
	}
	java := filepath.Join(s.java, "bin", "java")
	args := append(quick[:], "-Xms256m", "-Xmx640m", "-Djava.awt.headless=true", "-Dfile.encoding=UTF-8", "--enable-native-access=ALL-UNNAMED",
		"-Dfess", "-Dfess.home="+s.work, "-Dfess.context.path=/", "-Dfess.port="+s.fessURL[strings.LastIndexByte(s.fessURL, ':')+1:],
		"-Dfess.webapp.path="+s.path("app"), "-Dfess.temp.path="+s.path("temp"), "-Dfess.log.name=fess", "-Dfess.log.path="+s.work,
		"-Dfess.log.level=info", "-Dlasta.env=web", "-Dtomcat.config.path=tomcat_config.properties",
		"-Dfess.search_engine.http_address="+s.engineURL, "-Dfess.config.search_engine.type=cloud", "-Dfess.dictionary.path=",
		"-Dfess.config.index.number_of_shards=1",
		// By default, the suggest job runs in its own JVM, waits while the
		// machine is busy, and reads half of the documents.
		"-Dfess.config.java.command.path="+java, "-Dfess.config.adaptive.load.control=0",
		"-Dfess.config.suggest.update.contents.limit.num.percentage=100%", "-Dfess.config.suggest.popular.word.query.freq=1")
	args = append(append(args, settings...), "-cp", s.path("boot")+string(filepath.ListSeparator)+filepath.Join(s.jars, "boot", "*"),
		"org.codelibs.fess.FessBoot")
	var err error
	if s.fess, err = startProcess("Fess", s.path("fess.out"), s.work, java, args...); err != nil {
		return err
	}
	return s.fess.ready(ctx, s.fessURL+"/api/v1/health", nil)
}

//go:embed webapp
var webapp embed.FS

// prepare creates Fess's web application with only the files that its API and
// its suggest job need.
func (s *site) prepare() error {
	classes := s.path("app/WEB-INF/classes")
	if err := unzip(filepath.Join(s.jars, "fess", fessJar), classes); err != nil {
		return err
	}
	if err := prepareIndex(classes, s.cluster().confDir(1)); err != nil {
		return err
	}
	if err := onDemand(filepath.Join(classes, "fess_indices/fess_config.scheduled_job/scheduled_job.bulk")); err != nil {
		return err
	}
	// The classes that start Tomcat are loaded outside the web application.
	for _, part := range []string{"FessBoot*.class", "tomcat"} {
		if err := copyAll(filepath.Join(classes, "org/codelibs/fess"), part, s.path("boot/org/codelibs/fess")); err != nil {
			return err
		}
	}
	if err := copyAll(filepath.Join(s.jars, "fess"), "*.jar", s.path("app/WEB-INF/lib")); err != nil {
		return err
	}
	if err := os.Remove(s.path("app/WEB-INF/lib/" + fessJar)); err != nil { // its classes would be loaded twice
		return err
	}
	if err := copyAll(filepath.Join(s.jars, "boot"), "tomcat-annotations-api-*.jar", s.path("app/WEB-INF/env/suggest/lib")); err != nil {
		return err
	}
	for from, to := range map[string]string{"web.xml": "web.xml", "redirect.jsp": "view/redirect.jsp", "suggest.xml": "env/suggest/resources/app.xml",
		"creator.xml": "env/suggest/resources/my_creator.xml", "log4j2.xml": "env/suggest/resources/log4j2.xml"} {
		data, err := webapp.ReadFile("webapp/" + from)
		if err != nil {
			return err
		}
		if err := write(s.path("app/WEB-INF/"+to), data); err != nil {
			return err
		}
	}
	for _, dir := range []string{"app/WEB-INF/conf", "app/WEB-INF/plugin", "app/WEB-INF/thumbnails", "app/WEB-INF/logs", "temp"} {
		if err := os.MkdirAll(s.path(dir), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		write(s.path("app/WEB-INF/project.properties"), []byte("fess.version=15.4.0\n")),
		write(s.path("boot/tomcat_config.properties"), []byte("tomcat.URIEncoding = UTF-8\ntomcat.useBodyEncodingForURI = true\ntomcat.bindAddress = 127.0.0.1\n")),
		write(s.path("boot/logging.properties"), []byte("handlers = java.util.logging.ConsoleHandler\n.level = INFO\n")))
}

// fessJar is the name of Fess's own jar.
const fessJar = "fess-15.4.0.jar"

// onDemand disables the jobs that Fess runs every minute, so that they can be
// run when needed. One of them starts a JVM for thumbnails. Another makes
// suggestions from the searches so far, so that answers would depend on the
// time.
func onDemand(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	const each, never = `"cronExpression":"* * * * *"`, `"cronExpression":""`
	if !bytes.Contains(data, []byte(each)) {
		return fmt.Errorf("no job that runs every minute in %s", filepath.Base(file))
	}
	return os.WriteFile(file, bytes.ReplaceAll(data, []byte(each), []byte(never)), 0o644)
}

// write writes a file and creates its parent folders.
func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// unzip unpacks an archive into a folder.
func unzip(file, dir string) error {
	r, err := zip.OpenReader(file)
	if err != nil {
		return err
	}
	defer r.Close()
	return os.CopyFS(dir, r)
}

// copyAll links or copies the files in a folder that match a pattern, and the
// contents of the folders that match, to another folder.
func copyAll(from, pattern, to string) error {
	found, err := filepath.Glob(filepath.Join(from, pattern))
	if err != nil || len(found) == 0 {
		return fmt.Errorf("no %s in %s", pattern, from)
	}
	for _, root := range found {
		err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(from, file)
			if err != nil {
				return err
			}
			return linkOrCopy(file, filepath.Join(to, name))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// linkOrCopy creates a hard link to a file, or a copy if that is not possible.
func linkOrCopy(from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if os.Link(from, to) == nil {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
