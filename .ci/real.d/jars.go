package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed maven
var poms embed.FS

// install returns the folder with the jars, which has one folder for each name
// of a file in maven/. Jars that are in the cache are not downloaded again.
func install(ctx context.Context, cache, java string, names ...string) (string, error) {
	sum := sha256.New()
	for _, name := range names {
		data, err := poms.ReadFile("maven/" + name + ".xml")
		if err != nil {
			return "", err
		}
		sum.Write(data)
	}
	jars := filepath.Join(cache, "jars-"+hex.EncodeToString(sum.Sum(nil)[:6]))
	err := pack(jars, func(dir string) error {
		if err := needMaven(ctx); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, "installing jars from Maven Central:", strings.Join(names, " "))
		return getJars(ctx, dir, java, names)
	})
	return jars, err
}

// needMaven installs Maven in CI if it is missing.
func needMaven(ctx context.Context) error {
	if _, err := exec.LookPath("mvn"); err == nil {
		return nil
	}
	if !inCI() {
		return fmt.Errorf("%w: no mvn on the PATH; install Maven", errMissing)
	}
	fmt.Println("installing Maven")
	if err := aptInstall(ctx, "maven"); err != nil {
		return fmt.Errorf("installing Maven: %w", err)
	}
	return nil
}

// getJars copies the dependencies of each POM to a folder in dir with the POM's
// name, and unpacks those that are archives.
func getJars(ctx context.Context, dir, java string, names []string) error {
	// POMs of third parties name repositories that no longer exist. An empty
	// folder replaces all of them, so that only Maven Central is used.
	empty := filepath.Join(dir, "empty")
	settings := filepath.Join(dir, "settings.xml")
	mirror := url.URL{Scheme: "file", Path: empty}
	err := errors.Join(os.Mkdir(empty, 0o755), os.WriteFile(settings, []byte(`<settings><mirrors><mirror><id>empty</id><mirrorOf>*,!central</mirrorOf><url>`+
		mirror.String()+`</url></mirror></mirrors></settings>`), 0o644))
	if err != nil {
		return err
	}
	for _, name := range names {
		pom, err := poms.ReadFile("maven/" + name + ".xml")
		if err != nil {
			return err
		}
		file := filepath.Join(dir, name+".xml")
		if err := os.WriteFile(file, pom, 0o644); err != nil {
			return err
		}
		err = command(ctx, mavenJava(java), "mvn", "--quiet", "--batch-mode", "--no-transfer-progress", "--global-settings", settings, "--file", file,
			"org.apache.maven.plugins:maven-dependency-plugin:2.8:copy-dependencies",
			"-DincludeScope=runtime", "-DoutputDirectory="+filepath.Join(dir, name))
		if err != nil {
			return fmt.Errorf("installing the jars of %s: %w", name, err)
		}
		zips, _ := filepath.Glob(filepath.Join(dir, name, "*.zip"))
		for _, zip := range zips {
			if err := unzip(zip, filepath.Join(dir, name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// mavenJava returns the environment for Maven: a Java if the machine has no
// other. The machine's own is better because it may have additional
// certificates.
func mavenJava(java string) []string {
	if _, err := exec.LookPath("java"); err == nil || os.Getenv("JAVA_HOME") != "" {
		return nil
	}
	return []string{"JAVA_HOME=" + java}
}

// pack creates a folder unless it exists. The folder is filled under another
// name first, so that it never exists incomplete.
func pack(dir string, fill func(dir string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(partial)
	if err := fill(partial); err != nil {
		return err
	}
	err = os.Rename(partial, dir)
	if _, there := os.Stat(dir); there == nil { // another run may have created it
		return nil
	}
	return err
}

// command runs a program. If it fails, the error contains its output.
func command(ctx context.Context, env []string, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, bytes.TrimSpace(out[max(0, len(out)-2000):]))
	}
	return nil
}
