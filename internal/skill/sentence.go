package skill

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSentence is the length in characters of a short description: of 200 about
// 40 fit into what Claude Code lists.
const maxSentence = 200

// firstSentence returns the first sentence of a description on one line,
// without the Markdown before and around it; all of it if it has no end.
func firstSentence(description string) string {
	text := firstParagraph(cleanText(description, 16<<10))
	end := sentenceEnd(text, 0)
	// "Important!" says nothing alone. (A sentence of Chinese has no blanks.)
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

// firstParagraph returns the first lines of prose as one. A heading is taken
// only if nothing else is there.
func firstParagraph(text string) string {
	const wrapped = 60 // from this length on a line is taken to go on in the next
	var paragraph, heading string
	fenced := false
	for line := range strings.SplitSeq(text, "\n") {
		if mark := strings.TrimSpace(line); strings.HasPrefix(mark, "```") || strings.HasPrefix(mark, "~~~") {
			fenced = !fenced
			line = ""
		}
		content, kind := stripMarkdown(line)
		switch {
		case fenced || kind == markupLine:
			content = ""
		case kind == headingLine:
			if heading == "" {
				heading = content
			}
			content = ""
		}
		goesOn := kind == proseLine && (len(paragraph) >= wrapped || unicode.IsLower(firstRune(content)))
		switch {
		case paragraph == "":
			paragraph = content
		case content != "" && goesOn:
			paragraph += " " + content
		default:
			return paragraph
		}
	}
	if paragraph == "" {
		return heading
	}
	return paragraph
}

// The kinds of lines in a description.
const (
	proseLine   = iota
	bulletLine  // an item of a list, a quotation
	headingLine // "# Search"
	markupLine  // a rule, a tag alone, a row of a table
)

var (
	headingMarks = regexp.MustCompile(`^#+(?: |$)`)
	bulletMarks  = regexp.MustCompile(`^(?:(?:[-*+>•]|\d+[.)]) +)+`)
	markupAlone  = regexp.MustCompile(`^(?:[-=*_ |:]*|<[^<]*>)$`)
)

// stripMarkdown returns a line without what Markdown puts before and around its
// words.
func stripMarkdown(line string) (content string, kind int) {
	content = strings.TrimSpace(line)
	if headingMarks.MatchString(content) {
		kind, content = headingLine, strings.Trim(content, " #")
	}
	if marks := bulletMarks.FindString(content); marks != "" {
		content = content[len(marks):]
		if kind == proseLine {
			kind = bulletLine
		}
	}
	content = strings.NewReplacer("**", "", "__", "").Replace(content)
	if markupAlone.MatchString(content) {
		kind = markupLine
	}
	return content, kind
}

// sentenceEnd returns where the sentence that starts at from ends: behind its
// full stop, or at the end of text.
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
			if after == len(text) || text[after] == ' ' && !goesOn(text, i, after) {
				return after
			}
		}
	}
	return len(text)
}

// goesOn reports whether the sentence continues after the full stop at text[stop]
// and the blank at text[blank], because the stop belongs to an abbreviation or
// what follows starts in lower case.
func goesOn(text string, stop, blank int) bool {
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
	case "e.g", "i.e", "eg", "ie", "cf", "vs", "approx", "resp", "incl", "excl", "esp", "no", "fig", "dr", "mr", "mrs", "st":
		return true
	}
	// An initial, as in "J. Smith"; "U.S." has its stops within.
	return len(word) == 1 && word[0] >= 'a' && word[0] <= 'z' && unicode.IsUpper(rune(text[stop-1]))
}
