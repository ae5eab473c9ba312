package wire

import "testing"

func TestUnmark(t *testing.T) {
	for s, want := range map[string]string{
		"": "", "a < b": "a < b", " <strong>x</strong>y ": "xy", "<B CLASS='x'>y</B>": "y", "a<b/>c<br />d": "acd",
		"<h1><h6><h7><h0>": "<h7><h0>",
		"<strongx>":        "<strongx>", "<strong<b>>": "<strong>", "map<string, T>": "map<string, T>",
		"<a href='/>'>": "'>",
		"x<em>":         "x", "<table": "<table",
		"< b></ b>": "< b></ b>", "<p\nid=1>x": "x", "1 &lt;b&gt; &amp;amp; &quot;2&quot;": `1 <b> &amp; "2"`,
	} {
		if got := Unmark(s); got != want {
			t.Errorf("Unmark(%q) = %q, want %q", s, got, want)
		}
	}
}
