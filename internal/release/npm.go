package release

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A npmPackage is a package.json.
type npmPackage struct {
	Name          string            `json:"name"`
	Version       string            `json:"version"`
	Description   string            `json:"description"`
	Keywords      []string          `json:"keywords,omitempty"`
	License       string            `json:"license"`
	Homepage      string            `json:"homepage"`
	Repository    map[string]string `json:"repository"`
	MCPName       string            `json:"mcpName,omitempty"` // proves to the MCP registry who owns the package
	Bin           map[string]string `json:"bin,omitempty"`
	Engines       map[string]string `json:"engines,omitempty"`
	OS            []string          `json:"os,omitempty"`
	CPU           []string          `json:"cpu,omitempty"`
	Unplugged     bool              `json:"preferUnplugged,omitempty"` // Yarn must not leave the program in an archive
	Optional      map[string]string `json:"optionalDependencies,omitempty"`
	PublishConfig map[string]string `json:"publishConfig"`
}

// newNPM returns what all packages have.
func (r *Release) newNPM(name, description string) npmPackage {
	return npmPackage{Name: name, Version: r.Version, Description: description, License: license, Homepage: repository,
		Repository:    map[string]string{"type": "git", "url": "git+" + repository + ".git"},
		PublishConfig: map[string]string{"access": "public"}}
}

// NPM writes the packages of npm to a folder: for each platform one with the
// program, and the package knowhow, which starts the program of the platform.
// No package has a script for its installation. root is the folder of the repository.
func (r *Release) NPM(root, dir string) error {
	readme, err := os.ReadFile(filepath.Join(root, "release", "README.md"))
	if err != nil {
		return err
	}
	launcher, err := os.ReadFile(filepath.Join(root, "release", "npm", "knowhow.js"))
	if err != nil {
		return err
	}
	licenseText, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return err
	}
	top := r.newNPM(npmName, description)
	top.Keywords = []string{"mcp", "mcp-server", "search", "knowledge", "notes", "skills"}
	top.MCPName = registry
	top.Bin = map[string]string{"knowhow": "knowhow.js"}
	top.Engines = map[string]string{"node": ">=18"}
	top.Optional = map[string]string{}
	for _, p := range r.platforms() {
		os, arch := p.node()
		name := npmScope + "/" + os + "-" + arch
		top.Optional[name] = r.Version
		pkg := r.newNPM(name, fmt.Sprintf("The program of the package %s for %s on %s", npmName, os, arch))
		pkg.OS, pkg.CPU, pkg.Unplugged = []string{os}, []string{arch}, true
		program, err := r.program(p, "bin/"+p.exe())
		if err != nil {
			return err
		}
		text := fmt.Sprintf("# %s\n\n%s. Install the package `%s`, which depends on it.\n", name, pkg.Description, npmName)
		err = r.writeNPM(dir, pkg, program, file{"README.md", 0o644, []byte(text)}, file{"LICENSE", 0o644, licenseText})
		if err != nil {
			return err
		}
	}
	return r.writeNPM(dir, top, file{"knowhow.js", 0o755, launcher}, file{"README.md", 0o644, readme},
		file{"LICENSE", 0o644, licenseText})
}

// writeNPM writes a package under the name that npm pack gives it.
func (r *Release) writeNPM(dir string, pkg npmPackage, files ...file) error {
	manifest, err := json.MarshalIndent(pkg, "", "  ")
	if err != nil {
		return err
	}
	files = append([]file{{"package.json", 0o644, append(manifest, '\n')}}, files...)
	data, err := r.tarball("package", files)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(strings.TrimPrefix(pkg.Name, "@"), "/", "-") + "-" + r.Version + ".tgz"
	return write(dir, file{name, 0o644, data})
}
