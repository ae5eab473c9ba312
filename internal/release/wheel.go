package release

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Wheels writes the wheels of PyPI to a folder, one for each platform. A wheel
// has the program as a script, its pages for man, and no Python. docs is the folder
// that [Docs] wrote, and root that of the repository.
func (r *Release) Wheels(root, docs, dir string) error {
	version, err := r.python()
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(root, "release", "README.md"))
	if err != nil {
		return err
	}
	licenseText, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	pages, err := filepath.Glob(filepath.Join(docs, "man", "*"))
	if err != nil {
		return err
	}
	base := strings.ReplaceAll(wheelName, "-", "_") + "-" + version
	info, scripts, data := base+".dist-info/", base+".data/scripts/", base+".data/data/"
	for _, p := range r.platforms() {
		program, err := r.program(p, scripts+p.exe())
		if err != nil {
			return err
		}
		files := []file{program, alias(p, scripts)}
		for _, page := range pages {
			text, err := os.ReadFile(page)
			if err != nil {
				return err
			}
			files = append(files, file{data + "share/man/man1/" + filepath.Base(page), 0o644, text})
		}
		wheel := "Wheel-Version: 1.0\nGenerator: knowhow\nRoot-Is-Purelib: false\n"
		for _, tag := range p.wheel() {
			wheel += "Tag: py3-none-" + tag + "\n"
		}
		files = append(files,
			file{info + "licenses/LICENSE", 0o644, licenseText},
			file{info + "METADATA", 0o644, []byte(metadata(version, string(readme)))},
			file{info + "WHEEL", 0o644, []byte(wheel)})
		archive, err := r.zipped(append(files, record(files, info+"RECORD")))
		if err != nil {
			return err
		}
		name := base + "-py3-none-" + strings.Join(p.wheel(), ".") + ".whl"
		if err := write(dir, file{name, 0o644, archive}); err != nil {
			return err
		}
	}
	return nil
}

// alias returns a script with the name of the wheel that starts the program
// beside it. uvx and pipx run the command with the name of the wheel.
func alias(p Platform, dir string) file {
	if p.OS == "windows" {
		return file{dir + wheelName + ".cmd", 0o755, []byte("@\"%~dp0knowhow.exe\" %*\r\n")}
	}
	return file{dir + wheelName, 0o755, []byte("#!/bin/sh\nexec \"$(dirname \"$0\")/knowhow\" \"$@\"\n")}
}

// metadata returns the file METADATA.
func metadata(version, readme string) string {
	return fmt.Sprintf(`Metadata-Version: 2.4
Name: %s
Version: %s
Summary: %s
Home-page: %s
License-Expression: %s
License-File: LICENSE
Keywords: mcp,mcp-server,search,knowledge,notes,skills
Description-Content-Type: text/markdown

%s`, wheelName, version, description, repository, license, readme)
}

// record returns the file RECORD, which lists the other files with their hashes and
// sizes.
func record(files []file, name string) file {
	var b strings.Builder
	for _, f := range files {
		sum := sha256.Sum256(f.data)
		fmt.Fprintf(&b, "%s,sha256=%s,%d\n", f.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(f.data))
	}
	b.WriteString(name + ",,\n")
	return file{name, 0o644, []byte(b.String())}
}
