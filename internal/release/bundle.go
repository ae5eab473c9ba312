package release

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// bundleName returns the name of the MCP bundle of a platform.
func bundleName(p Platform) string { return "knowhow-" + p.OS + "-" + p.Arch }

// Bundles writes for each platform the folder of an MCP bundle, which the program
// mcpb packs into a file. root is the folder of the repository.
func (r *Release) Bundles(root, dir string) error {
	manifest, err := r.versioned(filepath.Join(root, "release", "mcpb", "manifest.json"))
	if err != nil {
		return err
	}
	licenseText, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range r.platforms() {
		platform, _ := p.node()
		program, err := r.program(p, "server/"+p.exe())
		if err != nil {
			return err
		}
		var m map[string]json.RawMessage
		if err := json.Unmarshal(manifest, &m); err != nil {
			return fmt.Errorf("reading release/mcpb/manifest.json: %w", err)
		}
		m["compatibility"] = json.RawMessage(fmt.Sprintf(`{"platforms":[%q]}`, platform))
		text, err := json.MarshalIndent(m, "", "  ")
		if err != nil {
			return err
		}
		text = bytes.ReplaceAll(text, []byte("server/knowhow"), []byte("server/"+p.exe()))
		for _, f := range []file{{"manifest.json", 0o644, append(text, '\n')}, program, {"LICENSE", 0o644, licenseText}} {
			if err := write(filepath.Join(dir, bundleName(p)), f); err != nil {
				return err
			}
		}
	}
	return nil
}

// Server writes server.json, the entry of the MCP registry, to a folder: the
// packages of npm and PyPI, and the bundles that mcpb packed in the folder bundles.
func (r *Release) Server(root, bundles, dir string) error {
	version, err := r.python()
	if err != nil {
		return err
	}
	text, err := r.versioned(filepath.Join(root, "release", "server.json"))
	if err != nil {
		return err
	}
	var server map[string]json.RawMessage
	var packages []map[string]any
	if err = json.Unmarshal(text, &server); err == nil {
		err = json.Unmarshal(server["packages"], &packages)
	}
	if err != nil {
		return fmt.Errorf("reading release/server.json: %w", err)
	}
	for _, p := range packages {
		if p["registryType"] == "pypi" {
			p["version"] = version
		}
	}
	for _, p := range r.platforms() {
		name := bundleName(p) + ".mcpb"
		data, err := os.ReadFile(filepath.Join(bundles, name))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(data)
		packages = append(packages, map[string]any{"registryType": "mcpb",
			"identifier": repository + "/releases/download/v" + r.Version + "/" + name,
			"fileSha256": hex.EncodeToString(sum[:]), "transport": map[string]string{"type": "stdio"}})
	}
	if server["packages"], err = json.Marshal(packages); err != nil {
		return err
	}
	out, err := json.MarshalIndent(server, "", "  ")
	if err != nil {
		return err
	}
	return write(dir, file{"server.json", 0o644, append(out, '\n')})
}

// Gemini writes the extensions of the Gemini CLI, one for each platform, with the
// program and the skill, under the names that the Gemini CLI looks for.
func (r *Release) Gemini(root, dir string) error {
	manifest, err := r.versioned(filepath.Join(root, "release", "gemini", "gemini-extension.json"))
	if err != nil {
		return err
	}
	skills, err := readTree(filepath.Join(root, "release", "plugin", "skills"), "skills")
	if err != nil {
		return err
	}
	licenseText, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	for _, p := range r.platforms() {
		program, err := r.program(p, p.exe())
		if err != nil {
			return err
		}
		text := bytes.ReplaceAll(manifest, []byte("${/}knowhow"), []byte("${/}"+p.exe()))
		files := append([]file{{"gemini-extension.json", 0o644, text}, {"LICENSE", 0o644, licenseText}, program}, skills...)
		archive, err := r.tarball("", files)
		if err != nil {
			return err
		}
		platform, arch := p.node()
		if err := write(dir, file{platform + "." + arch + ".knowhow.tar.gz", 0o644, archive}); err != nil {
			return err
		}
	}
	return nil
}

// readTree returns the files below a folder, with names below another one.
func readTree(dir, as string) (files []file, err error) {
	root := os.DirFS(dir)
	err = fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		files = append(files, file{path.Join(as, name), 0o644, data})
		return err
	})
	if err == nil && len(files) == 0 {
		err = fmt.Errorf("there are no files in %s: %w", dir, errkind.NotFound)
	}
	return files, err
}
