package skill

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// validate has the validator of the Agent Skills standard look at every folder of
// a folder.
const validate = `
import pathlib, sys
from skills_ref.validator import validate
skills = sorted(p for p in pathlib.Path(sys.argv[1]).iterdir())
refused = {p.name: errors for p in skills if (errors := validate(p))}
print(len(skills), "skills")
sys.exit(str(refused) if refused or not skills else 0)
`

// TestReferenceValidator shows the skills of all recorded servers to the validator
// of the standard.
func TestReferenceValidator(t *testing.T) {
	dir := os.Getenv("KNOWHOW_REFERENCE_SERVERS")
	if dir == "" {
		t.Skip("no reference servers: .ci/bridge installs them")
	}
	catalogs, _ := recorded(t)
	for name, o := range map[string]Options{"tools": {}, "full": {Description: "full"},
		"servers": {GroupByServer: true}} {
		t.Run(name, func(t *testing.T) {
			skills, _ := Render(catalogs, o)
			tmp := t.TempDir()
			for _, s := range skills {
				for _, f := range s.Files {
					path := filepath.Join(tmp, s.Name, filepath.FromSlash(f.Path))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, f.Content, 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			out, err := exec.Command(filepath.Join(dir, "venv", "bin", "python"), "-c", validate, tmp).CombinedOutput()
			if err != nil {
				t.Errorf("the validator refuses: %v\n%s", err, out)
			}
			t.Logf("%s", out)
		})
	}
}
