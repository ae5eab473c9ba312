package site

import (
	"strconv"
	"strings"
	"time"
)

// Limits on robots.txt.
const (
	maxRobots     = 500 << 10 // bytes that are read (RFC 9309, section 2.5)
	maxRules      = 5000
	maxSitemaps   = 50
	maxCrawlDelay = time.Hour
)

// agent is the name in robots.txt.
const agent = "knowhow"

// A robots is what a robots.txt says to this program (RFC 9309). The zero robots
// allows everything.
type robots struct {
	rules    []robotsRule
	delay    time.Duration // between two requests; 0 means none
	sitemaps []string      // as written
}

// A robotsRule is a line Allow or Disallow.
type robotsRule struct {
	pattern string
	allow   bool
}

// parseRobots parses a robots.txt. Lines that are not understood are ignored.
func parseRobots(data []byte) robots {
	var r robots
	mine, all := robots{}, robots{}
	var named bool                   // a group for this program exists
	var toMine, toAll, inAgents bool // the group of the current line
	text := strings.TrimPrefix(string(data[:min(len(data), maxRobots)]), "\ufeff")
	for line := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == '\n' || r == '\r' }) {
		line, _, _ = strings.Cut(line, "#")
		key, value, ok := strings.Cut(line, ":")
		if !ok {
			continue
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		if key == "user-agent" {
			if !inAgents {
				toMine, toAll = false, false
			}
			inAgents = true
			switch name := productName(value); {
			case name == "*":
				toAll = true
			case strings.EqualFold(name, agent):
				toMine, named = true, true
			}
			continue
		}
		switch key {
		case "allow", "disallow", "crawl-delay":
			inAgents = false
			if toMine {
				mine.add(key, value)
			}
			if toAll {
				all.add(key, value)
			}
		case "sitemap":
			if len(r.sitemaps) < maxSitemaps {
				r.sitemaps = append(r.sitemaps, value)
			}
		}
	}
	if !named {
		mine = all
	}
	mine.sitemaps = r.sitemaps
	return mine
}

// productName returns the name of a program without its version and all else.
func productName(s string) string {
	if strings.HasPrefix(s, "*") {
		return "*"
	}
	end := strings.IndexFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '-' || r == '_')
	})
	if end < 0 {
		return s
	}
	return s[:end]
}

func (r *robots) add(key, value string) {
	if key == "crawl-delay" {
		if s, err := strconv.ParseFloat(value, 64); err == nil && s > 0 {
			r.delay = time.Duration(min(s, maxCrawlDelay.Seconds()) * float64(time.Second))
		}
		return
	}
	if value == "" || len(r.rules) == maxRules || len(value) > maxAddress {
		return // an empty Disallow forbids nothing
	}
	if value[0] != '/' && value[0] != '*' {
		value = "/" + value
	}
	r.rules = append(r.rules, robotsRule{escape(value), key == "allow"})
}

// allows reports whether a path, with its query, may be requested: the longest rule
// that matches decides, and Allow if there are two.
func (r robots) allows(path string) bool {
	allowed, longest := true, -1
	for _, rule := range r.rules {
		if n := len(rule.pattern); (n > longest || n == longest && rule.allow) && matchRobots(rule.pattern, path) {
			allowed, longest = rule.allow, n
		}
	}
	return allowed
}

// matchRobots reports whether a pattern matches the beginning of a path. A star
// stands for any characters, and a dollar sign at the end for the end of the path.
func matchRobots(pattern, path string) bool {
	pattern, toEnd := strings.CutSuffix(pattern, "$")
	first, rest, stars := strings.Cut(pattern, "*")
	if !strings.HasPrefix(path, first) {
		return false
	}
	path = path[len(first):]
	for stars {
		var part string
		part, rest, stars = strings.Cut(rest, "*")
		if !stars && toEnd {
			return strings.HasSuffix(path, part)
		}
		i := strings.Index(path, part)
		if i < 0 {
			return false
		}
		path = path[i+len(part):]
	}
	return !toEnd || path == ""
}
