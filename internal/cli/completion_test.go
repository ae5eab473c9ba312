package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestComplete(t *testing.T) {
	data, docs := indexFiles(t, map[string]string{"a.txt": "x"})
	if err := os.WriteFile(filepath.Join(data, "access.json"),
		[]byte(`{"users":{"ann":{},"auth0|7":{}},"groups":{"staff":{}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct{ words, want string }{
		{"sea", "search"},
		{"access ", "add list set rm rotate"},
		{"access add ", ""},
		{"access add --re", "--read"},
		{"access add ann --read ", "docs"},
		{"access set ", "ann auth0|7 staff"},
		{"access rm a", "ann auth0|7"},
		{"access rotate --data /no/such ", ""},
		{"access rotate --access " + filepath.Join(data, "none.json") + " ", ""},
		{"access set ann ", ""},
		{"s", "serve search sources status store sync start"},
		{"__", ""},
		{"search --l", "--label --lang"},
		{"search --label ", "docs"},
		{"search --label do", "docs"},
		{"search --label x", ""},
		{"search --label=d", "--label=docs"},
		{"search --label = d", "docs"},
		{"search --label =", "docs"},
		{"search --top ", ""},
		{"search --top 3 --label docs --lab", "--label"},
		{"search --no-such-flag ", ""},
		{"search words --json --h", "--help"},
		{"serve --transport ", "http stdio"},
		{"serve --transport=s", "--transport=stdio"},
		{"serve --data ", ""},
		{"serve ", ""},
		{"connect cl", "claude-code claude-desktop cline"},
		{"connect cursor ", ""},
		{"connect cursor --scope ", "user project"},
		{"sources ", "list rm"},
		{"sources rm ", "docs"},
		{"sources --data " + data + " rm ", "docs"},
		{"sources --data /no/such rm ", ""},
		{"sources --data=/no/such rm ", ""},
		{"sources rm docs ", ""},
		{"datasets ch", "check"},
		{"datasets check --j", "--json"},
		{"help comp", "completion"},
		{"help datasets s", "search"},
		{"completion ", "bash zsh fish powershell"},
		{"nosuch ", ""},
		{`search --label ""`, "docs"},
		{"read " + docs + "/", ""},
	}
	for _, tt := range tests {
		v, _ := testInvocation(map[string]string{"KNOWHOW_DATA": data})
		var got []string
		for _, c := range v.complete(t.Context(), strings.Split(tt.words, " ")) {
			got = append(got, c.value)
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("complete(%q) = %q, want %q", tt.words, text, tt.want)
		}
	}
	out, _, status := run(t, data, "__complete", "--", "sources", "rm", "")
	if want := "docs\t" + docs + "\n"; out != want || status != 0 {
		t.Errorf("__complete = %d with %q, want 0 with %q", status, out, want)
	}
}

// TestShells completes command lines in the shells that are installed.
func TestShells(t *testing.T) {
	data, _ := indexFiles(t, map[string]string{"a.txt": "x"})
	bin := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(exe, filepath.Join(bin, "knowhow")); err != nil { // testscript.Main runs a program by its name
		t.Skipf("no links here: %v", err)
	}
	if err := os.WriteFile(filepath.Join(bin, "file.md"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shells := []struct {
		name, program string
		args          []string
		script        string // completes $LINE, words without quotes, and prints the values
	}{
		{"bash", "bash", []string{"--norc", "-c"}, `source <(knowhow completion bash)
			COMP_WORDS=($WORDS); [[ $LAST ]] && COMP_WORDS+=("$LAST") || COMP_WORDS+=("")
			COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _knowhow; printf '%s\n' "${COMPREPLY[@]}"`},
		{"zsh", "zsh", []string{"-f", "-c"}, `compdef() { }; _files() { print -- file.md }
			_describe() { local c; for c in "${(@P)2}"; do [[ $c == $LAST* ]] && print -r -- "${c%%:*}"; done }
			source <(knowhow completion zsh)
			words=(${=WORDS} "$LAST"); CURRENT=${#words}; _knowhow`},
		{"fish", "fish", []string{"-c"}, `knowhow completion fish | source; complete -C "$WORDS $LAST" | string replace -r '\t.*' ''`},
		{"powershell", "pwsh", []string{"-NoProfile", "-Command"},
			`knowhow completion powershell | Out-String | Invoke-Expression
			$line = "$env:WORDS $env:LAST"
			([System.Management.Automation.CommandCompletion]::CompleteInput($line, $line.Length, $null)).CompletionMatches.CompletionText`},
	}
	tests := []struct {
		words, last string
		want        []string
	}{
		{"knowhow", "sea", []string{"search"}},
		{"knowhow search", "--la", []string{"--label", "--lang"}},
		{"knowhow search --label", "d", []string{"docs"}},
		{"knowhow sources rm", "", []string{"docs"}},
		{"knowhow serve --transport", "", []string{"http", "stdio"}},
	}
	for _, shell := range shells {
		t.Run(shell.name, func(t *testing.T) {
			path, err := exec.LookPath(shell.program)
			if err != nil {
				t.Skipf("%s is not installed", shell.program)
			}
			for _, tt := range tests {
				cmd := exec.Command(path, append(shell.args, shell.script)...)
				cmd.Dir = bin
				cmd.Env = append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
					"KNOWHOW_DATA="+data,
					"WORDS="+tt.words, "LAST="+tt.last, "HOME="+t.TempDir())
				out, err := cmd.CombinedOutput()
				got := strings.Fields(string(out))
				slices.Sort(got)
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("%s %q: %v (-want +got):\n%s\n%s", tt.words, tt.last, err, diff, out)
				}
			}
		})
	}
}
