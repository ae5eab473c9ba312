package child

import "testing"

func TestBatchLine(t *testing.T) {
	const shell = `C:\Windows\System32\cmd.exe`
	for _, tt := range []struct {
		file string
		args []string
		want string
	}{
		{`C:\node\npx.cmd`, []string{"-y", "a b"}, shell + ` /d /s /c "C:\node\npx.cmd ^"-y^" ^"a^ b^""`},
		{`C:\x y\a.bat`, []string{`end\`, `q"&calc`, ""}, shell +
			` /d /s /c "C:\x^ y\a.bat ^"end\\^" ^"q\^"^&calc^" ^"^""`},
		{`C:\p\node_modules\.bin\s.cmd`, []string{"%PATH%"}, shell +
			` /d /s /c "C:\p\node_modules\.bin\s.cmd ^^^"^^^%PATH^^^%^^^""`},
	} {
		if got := batchLine(shell, tt.file, tt.args); got != tt.want {
			t.Errorf("batchLine(%q, %q) = %s, want %s", tt.file, tt.args, got, tt.want)
		}
	}
}
