package ingest

import "testing"

func TestDocID(t *testing.T) {
	// printf 'docs\0a/b.md' | sha256sum | cut -c1-32
	if got, want := DocID("docs", "a/b.md"), "38ac3698fb8ca3534f1c31cb75a5599e"; got != want {
		t.Errorf("DocID(docs, a/b.md) = %s, want %s", got, want)
	}
}

func TestFileURL(t *testing.T) {
	tests := []struct{ path, want string }{
		{"/home/me/a.md", "file:///home/me/a.md"},
		{"/a b/ü#?%.md", "file:///a%20b/%C3%BC%23%3F%25.md"},
		{"/bad\xff", "file:///bad%FF"},
		{"C:/Users/me/a b.md", "file:///C:/Users/me/a%20b.md"},
		{"//host/share/a.md", "file://host/share/a.md"},
	}
	for _, tt := range tests {
		if got := fileURL(tt.path); got != tt.want {
			t.Errorf("fileURL(%q) = %q, want %q", tt.path, got, tt.want)
		}
	}
}
