package skill

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/spell"
)

// maxName is the maximum length of a skill's name in the Agent Skills
// specification.
const maxName = 64

// A claim is a tool, a server, or a tool within its server's skill that needs a
// unique name.
type claim struct {
	server, tool string
	base         string // the plain name: letters, digits, single hyphens; "mcp" if nothing is left
	long         string // base with the words that server and tool share repeated; "" if they share none
	trouble      string // the reason why base can't be the name, apart from collisions; "" if it can
}

// claimTool claims a skill for one tool. Words at the end of the server's name
// with which the tool's name begins are not repeated: git_diff of the server
// git is git-diff.
func claimTool(server, tool string) claim {
	s, t := slug(server), slug(tool)
	c := claim{server: server, tool: tool, base: slug(s + "-" + t), trouble: emptyPart(s != "" && t != "")}
	if rest := withoutOverlap(s, t); rest != t && c.trouble == "" {
		c.base, c.long = slug(s+"-"+rest), c.base
	}
	return c.settle()
}

// withoutOverlap returns the slug t without the words at its beginning that are
// at the end of the slug s.
func withoutOverlap(s, t string) string {
	server, tool := strings.Split(s, "-"), strings.Split(t, "-")
	for n := min(len(server), len(tool)); n > 0; n-- {
		if slices.Equal(server[len(server)-n:], tool[:n]) {
			return strings.Join(tool[n:], "-")
		}
	}
	return t
}

// claimServer claims a skill for all tools of a server.
func claimServer(server string) claim {
	s := slug(server)
	return claim{server: server, base: s, trouble: emptyPart(s != "")}.settle()
}

// claimFile claims the name of a tool's file in its server's skill.
func claimFile(server, tool string) claim {
	s := slug(tool)
	return claim{server: server, tool: tool, base: s, trouble: emptyPart(s != "")}.settle()
}

// emptyPart returns the trouble of a name with an empty slug.
func emptyPart(ok bool) string {
	if ok {
		return ""
	}
	return "a name without letters a-z and digits leaves nothing for it"
}

// settle determines the remaining troubles of a claim.
func (c claim) settle() claim {
	switch {
	case c.base == "":
		c.base = "mcp"
	case c.trouble != "":
	case len(c.base) > maxName:
		c.trouble = fmt.Sprintf("the plain name has %d characters, at most %d are allowed", len(c.base), maxName)
	case reserved(c.base):
		c.trouble = "Windows reserves the plain name for a device"
	}
	return c
}

// name returns the claim's name at a level: the plain name at level 0, then
// with 6, 12, 24 and 48 hexadecimal digits of a hash of the original names.
func (c claim) name(level int) string {
	if level == 0 {
		return c.base
	}
	digits := 6 << (level - 1)
	sum := sha256.Sum256([]byte(c.server + "\x00" + c.tool))
	base := c.base[:min(len(c.base), maxName-1-digits)]
	return strings.TrimRight(base, "-") + "-" + hex.EncodeToString(sum[:])[:digits]
}

// claimant describes the claimant in a warning.
func (c claim) claimant() string {
	if c.tool == "" {
		return "server " + spell.Quote(c.server)
	}
	return fmt.Sprintf("tool %s of server %s", spell.Quote(c.tool), spell.Quote(c.server))
}

// assign gives every claim a unique name. If several claims have the same plain
// name, none gets it, so that the order does not matter. Two claims must not
// have the same server and tool.
func assign(claims []claim) (names, warnings []string) {
	const maxLevel = 4
	claims = withoutDoubles(claims)
	levels := make([]int, len(claims))
	for i, c := range claims {
		if c.trouble != "" {
			levels[i] = 1
		}
	}
	names = make([]string, len(claims))
	for again := true; again; {
		again = false
		count := make(map[string]int, len(claims))
		for i, c := range claims {
			names[i] = c.name(levels[i])
			count[names[i]]++
		}
		for i := range claims {
			if count[names[i]] > 1 && levels[i] < maxLevel {
				levels[i]++
				again = true
			}
		}
	}
	for i, c := range claims {
		if levels[i] == 0 {
			continue
		}
		why := c.trouble
		if why == "" {
			why = fmt.Sprintf("another one has the same plain name %q", c.base)
		}
		warnings = append(warnings, fmt.Sprintf("%s is called %q: %s", c.claimant(), names[i], why))
	}
	return names, warnings
}

// withoutDoubles returns the claims. Claims that would otherwise have the same
// name use the name with repeated words.
func withoutDoubles(claims []claim) []claim {
	count := map[string]int{}
	for _, c := range claims {
		count[c.base]++
	}
	claims = slices.Clone(claims)
	for i, c := range claims {
		if c.long != "" && count[c.base] > 1 {
			claims[i].base, claims[i].trouble = c.long, ""
			claims[i] = claims[i].settle()
		}
	}
	return claims
}

var (
	gaps      = regexp.MustCompile(`[^A-Za-z0-9]+`)
	camelCase = regexp.MustCompile(`([a-z0-9])([A-Z])`)
	acronym   = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
)

// slug converts a name to lower-case letters a-z and digits with single hyphens
// between them, including one where camelCase starts a new word: getUserData is
// get-user-data, parseHTMLDoc is parse-html-doc. It is "" if nothing is left.
func slug(name string) string {
	name = gaps.ReplaceAllString(name, "-")
	name = acronym.ReplaceAllString(camelCase.ReplaceAllString(name, "$1-$2"), "$1-$2")
	return strings.ToLower(strings.Trim(name, "-"))
}

// reserved reports whether Windows reserves the name, with any extension, for a
// device.
func reserved(name string) bool {
	switch name {
	case "con", "prn", "aux", "nul":
		return true
	}
	return len(name) == 4 && (name[:3] == "com" || name[:3] == "lpt") && name[3] >= '0' && name[3] <= '9'
}
