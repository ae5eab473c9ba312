package fetch

import (
	"errors"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

func TestClassOf(t *testing.T) {
	tests := map[class][]string{
		public: {"8.8.8.8", "1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
			"128.0.0.0",
			"169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.167.255.255",
			"192.169.0.0",
			"198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2001:200::1", "2a00::1",
			"::ffff:8.8.8.8",
			"64:ff9b::808:808"},
		private: {"10.0.0.1", "10.255.255.255", "127.0.0.1", "127.255.255.254", "172.16.0.1", "172.31.255.255",
			"192.168.0.10",
			"100.64.0.1", "100.127.255.255", "::1", "fc00::1", "fd00::1", "fdff::1", "::ffff:127.0.0.1",
			"::ffff:10.0.0.1",
			"64:ff9b::7f00:1", "64:ff9b::192.168.0.1"},
		special: {"0.0.0.0", "0.1.2.3", "169.254.169.254", "169.254.0.1", "192.0.0.1", "192.0.0.192", "192.0.2.1",
			"192.88.99.1",
			"198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
			"255.255.255.255", "100.100.100.200", "168.63.129.16", "::", "::7f00:1", "::ffff:0:7f00:1",
			"::ffff:169.254.169.254",
			"::ffff:0.0.0.0", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:4136:e378::1",
			"2001:2::1",
			"2001:10::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "3fff::1", "4000::1", "5f00::1", "fe80::1",
			"fe80::1%eth0",
			"fec0::1", "ff02::1", "fd00:ec2::254", "2606:4700::1%eth0"},
	}
	for want, addrs := range tests {
		for _, s := range addrs {
			if got := classOf(netip.MustParseAddr(s)); got != want {
				t.Errorf("classOf(%s) = %d, want %d", s, got, want)
			}
		}
	}
	if got := classOf(netip.Addr{}); got != special {
		t.Errorf("classOf(no address) = %d, want special", got)
	}
}

// mustPolicy returns the policy of options that are known to be good.
func mustPolicy(t testing.TB, o Options) *policy {
	t.Helper()
	p, err := newPolicy(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestCheckCanonical(t *testing.T) {
	tests := []struct{ raw, want string }{
		{"http://example.com", "http://example.com"},
		{"HTTPS://EXAMPLE.com./a%2Fb?c=d#e", "https://example.com/a%2Fb?c=d"},
		{" http://example.com/\n", "http://example.com/"},
		{"http://example.com:8080/", "http://example.com:8080/"},
		{"http://my_host.example/a b/ü", "http://my_host.example/a%20b/%C3%BC"},
		{"http://example.com/?q=a b&ü=<\">", "http://example.com/?q=a%20b&%C3%BC=<\">"},
		{"http://bücher.example/", "http://xn--bcher-kva.example/"},
		{"http://８.８.８.８/", "http://8.8.8.8/"},
		{"http://8。8。8。8/", "http://8.8.8.8/"},
		{"http://[2606:4700:0:0::1111]:80/x", "http://[2606:4700::1111]:80/x"},
		{"http://[2606:4700::1111]/x", "http://[2606:4700::1111]/x"},
		{"http://[::ffff:8.8.8.8]/", "http://[::ffff:8.8.8.8]/"},
		{"http://xn--0.example/", "http://xn--0.example/"},
	}
	p := mustPolicy(t, Options{})
	for _, tt := range tests {
		u, err := p.check(tt.raw)
		if err != nil {
			t.Errorf("check(%q) = %v", tt.raw, err)
			continue
		}
		if got := u.String(); got != tt.want {
			t.Errorf("check(%q) = %q, want %q", tt.raw, got, tt.want)
		}
	}
}

func TestCheckRefuses(t *testing.T) {
	const notAllowed, inPrivate, noURL = "is not allowed", "private network targets are not allowed",
		"is not a web address"
	tests := []struct {
		why  string
		urls []string
	}{
		{`the scheme "file" is not allowed`, []string{"file:///etc/passwd", "FILE://host/x"}},
		{notAllowed, []string{"ftp://example.com/", "gopher://x", "javascript:alert(1)", "smb://server/share",
			"data:,x",
			"jar:http://x!/",
			strings.Repeat("x", 7000) + "://h/"}},
		{"user name or a password", []string{"http://user@example.com/", "http://u:p@example.com/",
			"http://@example.com/",
			"https://:p@127.0.0.1/"}},
		{inPrivate, []string{
			"http://192.168.0.10", "http://127.0.0.1:80/", "http://10.1.2.3/",
			"http://169.254.169.254/latest/meta-data/",
			"http://0.0.0.0:8080/", "http://0/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/",
			"http://[::ffff:7f00:1]/",
			"http://[::127.0.0.1]/", "http://[64:ff9b::127.0.0.1]/", "http://[2002:7f00:1::]/",
			"http://[fd00:ec2::254]/",
			"http://[fe80::1%25eth0]/",
			"http://[2606:4700::1%25lo]/", "http://127.0.0.1./", "http://１２７.０.０.１/", "http://127。0。0。1/",
			"http://100.100.100.200/",
			"http://localhost/", "http://LOCALHOST.:80/", "http://a.localhost/", "http://ⓛocalhost/",
			"http://255.255.255.255/",
			"http://224.0.0.1/",
		}},
		{"unusual spelling", []string{
			"http://127.1/", "http://2130706433/", "http://0x7f000001/", "http://0x7f.1/", "http://0X7F.0.0.1/",
			"http://017700000001/",
			"http://0177.0.0.1/", "http://127.0.0.01/", "http://127.0.0.1.1/", "http://1.2.3.4.5/", "http://0x/",
			"http://example.123/",
			"http://256.1.1.1/", "http://0x7f.0.0.1./", "http://①②⑦.1/",
		}},
		{noURL, []string{
			"", "x", "/path", "//example.com/", "http:", "http://", "http:///x", "http:example.com",
			"http://exa mple.com/",
			"http://a..b/",
			"http://.a/", "http://./", "http://../", "http://exa%6Dple.com/", "http://a\x00b/", "http://a\\@b/",
			"http://a\tb/",
			"http://[::1/",
			"http://::1/", "http://a:b:80/", "http://a:0/", "http://a:65536/", "http://a:-1/", "http://a:x/",
			"http://[v1.a]/",
			"http://exa<mple/",
			"http://" + strings.Repeat("a", 254) + "/", "http://*.example.com/", "http://[127.0.0.1]:x/",
			"http://\u202eexample.com/",
		}},
		{"longer than", []string{"http://example.com/" + strings.Repeat("a", 1<<20)}},
	}
	p := mustPolicy(t, Options{})
	for _, tt := range tests {
		for _, raw := range tt.urls {
			u, err := p.check(raw)
			// An address of all zeros is one in an unusual spelling, too.
			if err == nil || !strings.Contains(err.Error(), tt.why) && raw != "http://0/" {
				t.Errorf("check(%.100q) = %v, %v, want an error with %q", raw, u, err, tt.why)
				continue
			}
			if !errors.Is(err, errkind.Denied) && !errors.Is(err, errkind.Unsupported) || len(err.Error()) > 500 {
				t.Errorf("check(%.100q) = %.600v, want a short Denied or Unsupported", raw, err)
			}
		}
	}
}

func TestCheckLists(t *testing.T) {
	list := []string{"example.com", "*.Example.org", "intra", "192.168.0.10", "[fd00::5]", "169.254.169.254",
		"BÜCHER.example"}
	tests := []struct {
		o    Options
		yes  bool
		urls []string
	}{
		{Options{AllowedHosts: list}, true, []string{"http://example.com/", "https://EXAMPLE.com.:8443/",
			"http://a.example.org/",
			"http://b.a.example.org/", "http://intra:8080/", "http://192.168.0.10/", "http://[fd00:0::5]/",
			"http://169.254.169.254/",
			"http://xn--bcher-kva.example/", "http://bücher.example/"}},
		{Options{AllowedHosts: list}, false, []string{"http://www.example.com/", "http://example.org/",
			"http://xexample.org/",
			"http://example.com.evil.net/", "http://evil.net/", "http://192.168.0.11/", "http://[::ffff:192.168.0.10]/",
			"http://8.8.8.8/",
			"http://localhost/", "http://127.0.0.1/", "http://intra.evil.net/", "ftp://example.com/",
			"http://u@example.com/",
			"http://0xc0a8000a/"}},
		{Options{AllowedHosts: []string{"localhost", "*.localhost"}}, true, []string{"http://localhost/",
			"http://a.localhost:1/"}},
		{Options{AllowedHosts: []string{"*.0.0.10.example"}}, false, []string{"http://10.0.0.10/"}},
		{Options{AllowPrivate: true}, true, []string{"http://192.168.0.10/", "http://localhost/", "http://[::1]/",
			"http://169.254.169.254/",
			"http://example.com/", "http://[fe80::1%25eth0]/"}},
		{Options{AllowPrivate: true}, false, []string{"http://127.1/", "file:///x"}},
		{Options{AllowPrivate: true, AllowedHosts: []string{"a.example"}}, true, []string{"http://a.example/"}},
		{Options{AllowPrivate: true, AllowedHosts: []string{"a.example"}}, false, []string{"http://192.168.0.10/",
			"http://b.example/"}},
		{Options{Schemes: []string{"HTTPS"}}, true, []string{"https://example.com/"}},
		{Options{Schemes: []string{"HTTPS"}}, false, []string{"http://example.com/"}},
	}
	for _, tt := range tests {
		p := mustPolicy(t, tt.o)
		for _, raw := range tt.urls {
			if _, err := p.check(raw); (err == nil) != tt.yes || err != nil && !errors.Is(err, errkind.Denied) {
				t.Errorf("%+v: check(%q) = %v, want allowed %t", tt.o, raw, err, tt.yes)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	tests := []Options{
		{Schemes: []string{"ftp"}}, {Schemes: []string{""}},
		{AllowedHosts: []string{""}}, {AllowedHosts: []string{"*"}}, {AllowedHosts: []string{"*."}},
		{AllowedHosts: []string{"a.*.b"}},
		{AllowedHosts: []string{"http://example.com"}}, {AllowedHosts: []string{"example.com:80"}},
		{AllowedHosts: []string{"*.10.0.0.1"}},
		{AllowedHosts: []string{"127.1"}}, {AllowedHosts: []string{"10.0.0.0/8"}}, {AllowedHosts: []string{"a b"}},
		{UserAgent: "a\r\nX: y"}, {UserAgent: "ü"},
		{Proxy: &url.URL{Scheme: "ftp", Host: "h"}}, {Proxy: &url.URL{Scheme: "http"}},
	}
	for _, o := range tests {
		if _, err := New(o); !errors.Is(err, errkind.Invalid) {
			t.Errorf("New(%+v) = %v, want Invalid", o, err)
		}
	}
}

// aton reads an address as the C library does: one to four numbers, decimal,
// octal or hexadecimal, of which the last one fills the rest.
func aton(s string) (netip.Addr, bool) {
	parts := strings.Split(s, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var v uint64
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 0, 64)
		bits := 8
		if i == len(parts)-1 {
			bits = 8 * (5 - len(parts))
		}
		if err != nil || strings.ContainsAny(part, "_obOB") || n >= 1<<bits {
			return netip.Addr{}, false
		}
		v = v<<bits | n
	}
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}), true
}

// Whatever passes keeps to the policy, however a peer reads it, and passes
// again unchanged.
func FuzzCheck(f *testing.F) {
	for _, s := range []string{"http://example.com/a?b#c", "http://127.1/", "http://[::ffff:10.0.0.1]:80/",
		"https://u:p@h/", "http://0x7f.1",
		"http://１２７.０.０.１/", "http://a.b.c./%2e%2e/\u2028", "http://[fe80::1%25lo]/", "http://8.8.8.8\\@10.0.0.1/",
		"http://017.1/?ü a"} {
		f.Add(s)
	}
	p := mustPolicy(f, Options{})
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := p.check(raw)
		if err != nil {
			if !errors.Is(err, errkind.Denied) && !errors.Is(err, errkind.Unsupported) {
				t.Errorf("check(%q) = %v, of no kind", raw, err)
			}
			return
		}
		s := u.String()
		again, err := p.check(s)
		if err != nil || again.String() != s {
			t.Errorf("check(%q) = %q, then %v, %v", raw, s, again, err)
		}
		if !slices.Contains([]string{"http", "https"}, u.Scheme) || u.User != nil || u.Host == "" || u.Fragment != "" {
			t.Errorf("check(%q) let %q pass", raw, s)
		}
		name := u.Hostname()
		a, err := netip.ParseAddr(name)
		if err != nil {
			var ok bool
			if a, ok = aton(name); !ok {
				a = netip.MustParseAddr("8.8.8.8")
			}
		}
		if classOf(a) != public || strings.HasSuffix(name, "localhost") &&
			(name == "localhost" || strings.HasSuffix(name,
				".localhost")) {
			t.Errorf("check(%q) let %q pass", raw, s)
		}
		if i := strings.IndexFunc(u.RequestURI()+u.Host, func(r rune) bool { return r <= ' ' || r > '~' }); i >= 0 {
			t.Errorf("check(%q): %q does not fit into a request line", raw, u.RequestURI())
		}
	})
}

// An address is of the same class in whichever IPv6 form it hides, or special.
func FuzzClassOf(f *testing.F) {
	f.Add([]byte{127, 0, 0, 1})
	f.Add([]byte{8, 8, 8, 8})
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) != 4 {
			return
		}
		v4 := netip.AddrFrom4([4]byte(b))
		want := classOf(v4)
		if outside := !v4.IsPrivate() && v4.IsGlobalUnicast(); want == public && !outside {
			t.Errorf("classOf(%s) = public", v4)
		}
		mapped := netip.AddrFrom16(v4.As16())
		translated := nat64.Addr().As16()
		copy(translated[12:], b)
		for _, a := range []netip.Addr{mapped, netip.AddrFrom16(translated)} {
			if got := classOf(a); got != want {
				t.Errorf("classOf(%s) = %d, want %d", a, got, want)
			}
		}
		compatible := netip.AddrFrom16([16]byte{12: b[0], b[1], b[2], b[3]})
		sixToFour := netip.AddrFrom16([16]byte{0x20, 0x02, b[0], b[1], b[2], b[3]})
		for _, a := range []netip.Addr{compatible, sixToFour} {
			if got := classOf(a); got == public {
				t.Errorf("classOf(%s) = public", a)
			}
		}
	})
}
