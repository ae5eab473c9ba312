package ingest

import "testing"

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
