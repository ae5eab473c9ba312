package query_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/query"
)

func TestLiterals(t *testing.T) {
	for _, tt := range []struct{ typed, words, rest string }{
		{"why is /etc/systemd/system/a.service not read", "a.service etc system systemd", "why is not read"},
		{"how do I print %Y-%m-%d in a backup", "%Y %m %d", "how do I print in a backup"},
		{"does OnCalendar=Mon..Fri run on Sunday?", "Mon..Fri OnCalendar", "does run on Sunday?"},
		{"copy etc to server:/etc/dir now", "dir server", "copy etc to now"},
		{"ls (/var/log/x) shows --all of TCP/IP and key=value", "log var x", "ls shows --all of TCP/IP and key=value"},
		{"what is the well-known C++ of don't ... $HOME 1.2.3 and read/write", "",
			"what is the well-known C++ of don't ... $HOME 1.2.3 and read/write"},
		{"パス /usr/share/日本 は何ですか", "share usr 日本", "パス は何ですか"},
		{`"/etc/fstab" OR title:mount`, "", `"/etc/fstab" OR title:mount`}, // an expression
		{"", "", ""},
	} {
		text, err := query.Read(tt.typed)
		if err != nil && tt.typed != "" {
			t.Fatal(err)
		}
		words, rest := text.Literals()
		want := strings.Fields(tt.words)
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(words)); !slices.Equal(got, want) || rest != tt.rest {
			t.Errorf("Literals(%q) = %q, %q, want %q, %q", tt.typed, got, rest, want, tt.rest)
		}
		for w := range words {
			if !slices.Contains(text.Words(), w) {
				t.Errorf("Literals(%q) has %q, which is not one of %q", tt.typed, w, text.Words())
			}
		}
	}
}
