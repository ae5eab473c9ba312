package data

import (
	"context"
	"html"
	"regexp"
	"strconv"
	"strings"

	"github.com/knowhow-mcp/knowhow/internal/extract/plain"
)

// paragraphPause is the pause between two subtitles, in seconds, that begins a
// paragraph.
const paragraphPause = 3

var (
	// timing matches the times of a subtitle.
	timing = regexp.MustCompile(`^\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})\s*-->\s*((?:\d+:)?\d{1,2}:\d{2}[.,]\d{1,3})`)
	voice  = regexp.MustCompile(`<v(?:\.[^ \t>]*)?[ \t]+([^>]*)>`)
	notCue = regexp.MustCompile(`^(?:STYLE$|REGION$|NOTE|WEBVTT)`)
	cueTag = regexp.MustCompile(`</?[A-Za-z0-9][^<>]*>|\{\\[^{}]*\}`)
)

// Subtitles extracts the text of subtitles (SubRip and WebVTT) without
// numbers, times and styles.
func Subtitles(ctx context.Context, t *plain.Text, src string) {
	out := plain.NewWriter(ctx)
	var held []string // lines of which it is not known whether they are the number of the next subtitle
	last := ""
	end := -1.0 // of the subtitle before
	inCue, skip := false, false
	vtt := strings.HasPrefix(src, "WEBVTT")
	flush := func() {
		for _, line := range held {
			line = cueText(line)
			if line != last { // live captions repeat their lines
				out.Line(line)
			}
			last = line
		}
		held = nil
	}
	for _, line := range plain.Lines(ctx, src) {
		m := timing.FindStringSubmatch(line[:min(len(line), 200)])
		switch {
		case m != nil:
			if n := len(held); n > 0 && (!inCue || isNumber(held[n-1])) {
				held = held[:n-1]
			}
			flush()
			start := seconds(m[1])
			if end >= 0 && start-end >= paragraphPause {
				out.Blank()
			}
			end, inCue, skip = seconds(m[2]), true, false
		case strings.TrimSpace(line) == "":
			flush()
			inCue, skip = false, false
		case skip:
		case !inCue && vtt && notCue.MatchString(line):
			skip = true
		default:
			held = append(held, line)
		}
	}
	flush()
	out.Finish(t)
}

// cueText returns a line of a subtitle without tags.
func cueText(line string) string {
	if len(line) > plain.MaxMarked {
		return line
	}
	line = voice.ReplaceAllString(line, "$1: ")
	return plain.OneLine(html.UnescapeString(cueTag.ReplaceAllString(line, "")))
}

func isNumber(s string) bool {
	_, err := strconv.ParseUint(strings.TrimSpace(s), 10, 64)
	return err == nil
}

// seconds returns a time such as 01:02:03,456 in seconds.
func seconds(s string) float64 {
	total := 0.0
	for part := range strings.SplitSeq(strings.ReplaceAll(s, ",", "."), ":") {
		n, err := strconv.ParseFloat(part, 64)
		if err != nil {
			return 0
		}
		total = total*60 + n
	}
	return total
}
