package skill

import (
	"cmp"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSentence is the maximum length of a short description, in characters.
// Claude Code lists about 40 descriptions of 200 characters.
const maxSentence = 200

// firstSentence returns the first sentence of a description on one line,
// without surrounding Markdown. If no sentence ends, it returns the whole
// description.
func firstSentence(description string) string {
	text := firstParagraph(cleanText(description, 16<<10))
	end := sentenceEnd(text, 0)
	// "Important!" alone is not informative. (A sentence in Chinese has no
	// blanks.)
	for end < len(text) && text[end] == ' ' && !strings.Contains(strings.TrimSpace(text[:end]), " ") {
		end = sentenceEnd(text, end)
	}
	text = strings.TrimSpace(text[:end])
	if head, ok := strings.CutSuffix(text, ":"); ok {
		text = head + "…"
	}
	return text
}

// firstRune returns the first character of s.
func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

var (
	codeBlocks   = regexp.MustCompile("(?ms)^[ \t]*(?:```|~~~).*?(?:\n[ \t]*(?:```|~~~)[^\n]*|\\z)")
	headingMarks = regexp.MustCompile(`^#+(?: |$)`)
	bulletMarks  = regexp.MustCompile(`^(?:(?:[-*+>•]|\d+[.)]) +)+`) // of a list or quotation
	markupAlone  = regexp.MustCompile(`^(?:[-=*_ |:]*|<[^<]*>)$`)    // a rule, a tag, a row of a table
	emphasis     = strings.NewReplacer("**", "", "__", "")
)

// firstParagraph returns the first lines of prose as one line. A heading is
// used only if there is no prose.
func firstParagraph(text string) string {
	const wrapped = 60 // a line of at least this length is assumed to continue on the next line
	var paragraph, heading string
	for line := range strings.SplitSeq(codeBlocks.ReplaceAllString(text, ""), "\n") {
		content := strings.TrimSpace(line)
		title := headingMarks.MatchString(content)
		if title {
			content = strings.Trim(content, " #")
		}
		marks := bulletMarks.FindString(content)
		content = emphasis.Replace(content[len(marks):])
		if markupAlone.MatchString(content) {
			content = ""
		}
		if title {
			heading, content = cmp.Or(heading, content), ""
		}
		continues := marks == "" && (len(paragraph) >= wrapped || unicode.IsLower(firstRune(content)))
		switch {
		case paragraph == "":
			paragraph = content
		case content != "" && continues:
			paragraph += " " + content
		default:
			return paragraph
		}
	}
	return cmp.Or(paragraph, heading)
}

// sentenceEnd returns the end of the sentence that starts at from: after its
// full stop, or the end of text.
func sentenceEnd(text string, from int) int {
	for i, r := range text[from:] {
		i += from
		after := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return after
		case '.', '!', '?':
			for after < len(text) && strings.IndexByte(`.!?)]"'*`, text[after]) >= 0 {
				after++
			}
			if after == len(text) || text[after] == ' ' && !continues(text, i, after) {
				return after
			}
		}
	}
	return len(text)
}

// continues reports whether the sentence continues after the full stop at
// text[stop] and the blank at text[blank], because the stop belongs to an
// abbreviation or the next word starts in lower case.
func continues(text string, stop, blank int) bool {
	next := firstRune(strings.TrimLeft(text[blank:], ` "'([*`+"`"))
	if unicode.IsLower(next) {
		return true
	}
	if text[stop] != '.' {
		return false
	}
	word := text[strings.LastIndexByte(text[:stop], ' ')+1 : stop]
	word = strings.ToLower(strings.TrimLeft(word, `("'[`))
	switch word {
	case "e.g", "i.e", "eg", "ie", "cf", "vs", "approx", "resp", "incl", "excl", "esp", "no", "fig",
		"dr", "mr", "mrs", "st":
		return true
	}
	// An initial, as in "J. Smith"; "U.S." contains its stops.
	return len(word) == 1 && word[0] >= 'a' && word[0] <= 'z' && unicode.IsUpper(rune(text[stop-1]))
}
