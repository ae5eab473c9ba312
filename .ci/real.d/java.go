package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

// findJava returns the home folder of a Java of version least or later: one on
// the machine, the one in the folder home, or, in CI, the one that get installs
// there.
func findJava(ctx context.Context, least int, home string, get func() error) (string, error) {
	for _, home := range append(javaHomes(), home) {
		if javaVersion(ctx, home) >= least {
			return home, nil
		}
	}
	if !inCI() {
		return "", fmt.Errorf("%w: no Java %d or later found; set JAVA_HOME", errMissing, least)
	}
	fmt.Fprintln(os.Stderr, "installing Java")
	err := get()
	if err == nil && javaVersion(ctx, home) < least {
		err = fmt.Errorf("no Java %d or later runs in %s", least, home)
	}
	if err != nil {
		return "", fmt.Errorf("installing Java: %w", err)
	}
	return home, nil
}

// runJava runs the Java of a Debian in the parent folder with that Debian's
// libraries, because those of the machine may be too old. They may also be too
// old for the program with which Java starts other programs; with VFORK Java
// does not use it.
const runJava = `#!/bin/sh
d=${0%/java/bin/java}
exec "$d"/usr/lib64/ld-linux-*.so.* --library-path "$(echo "$d"/usr/lib/*-linux-gnu)" "$(echo "$d"/usr/lib/jvm/java-21-openjdk-*/bin/java)" \
	-Djdk.lang.Process.launchMechanism=VFORK "$@"
`

// getJava installs a small Debian with Java in a folder. It requires root. Java
// packages with fewer locales are not sufficient, because OpenSearch needs
// Thai.
func getJava(ctx context.Context, dir string) error {
	if err := aptInstall(ctx, "debootstrap"); err != nil {
		return err
	}
	if err := command(ctx, nil, "debootstrap", "--variant=minbase", "--include=openjdk-21-jre-headless", "trixie", dir); err != nil {
		return err
	}
	if err := relink(dir, filepath.Join(dir, "usr", "lib", "jvm")); err != nil {
		return err
	}
	file := filepath.Join(dir, "java", "bin", "java")
	return errors.Join(write(file, []byte(runJava)), os.Chmod(file, 0o755))
}

// relink changes absolute symbolic links in a folder so that they point to the
// same paths below root.
func relink(root, in string) error {
	return filepath.WalkDir(in, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.Type() != fs.ModeSymlink {
			return err
		}
		to, err := os.Readlink(file)
		if err != nil || !filepath.IsAbs(to) {
			return err
		}
		if to, err = filepath.Rel(filepath.Dir(file), filepath.Join(root, to)); err != nil {
			return err
		}
		return errors.Join(os.Remove(file), os.Symlink(to, file))
	})
}

// aptInstall installs a package of the machine's Debian.
func aptInstall(ctx context.Context, name string) error {
	if err := command(ctx, nil, "apt-get", "update", "-qq"); err != nil {
		return err
	}
	return command(ctx, nil, "apt-get", "install", "-y", "-qq", "--no-install-recommends", name)
}

// javaHomes returns the folders where a Java may be, the preferred one first.
func javaHomes() []string {
	homes := []string{os.Getenv("JAVA_HOME")}
	if java, err := exec.LookPath("java"); err == nil {
		if java, err = filepath.EvalSymlinks(java); err == nil {
			homes = append(homes, filepath.Dir(filepath.Dir(java)))
		}
	}
	user, _ := os.UserHomeDir()
	for _, pattern := range []string{"/usr/lib/jvm/*", "/usr/java/*", "/opt/java/*", "/opt/*jdk*", user + "/.sdkman/candidates/java/*",
		user + "/.jdks/*", "/Library/Java/JavaVirtualMachines/*/Contents/Home", "/opt/homebrew/opt/openjdk*"} {
		found, _ := filepath.Glob(pattern)
		homes = append(homes, found...)
	}
	return homes
}

var versionForm = regexp.MustCompile(`version "(\d+)`)

// javaVersion returns the feature release of the Java in a folder, 0 if there
// is none that runs.
func javaVersion(ctx context.Context, home string) int {
	if home == "" {
		return 0
	}
	out, err := exec.CommandContext(ctx, filepath.Join(home, "bin", "java"), "-version").CombinedOutput()
	if m := versionForm.FindSubmatch(out); err == nil && m != nil {
		n, _ := strconv.Atoi(string(m[1]))
		return n
	}
	return 0
}

// inCI reports whether missing programs may be installed on the machine.
func inCI() bool { return os.Getenv("CI") == "true" }
