package stream

import "strings"

// Accepts says whether the values of an Accept header take JSON and streams. It
// reads them as the SDK does, without weights.
func Accepts(values []string) (asJSON, asStream bool) {
	for _, v := range values {
		for media := range strings.SplitSeq(v, ",") {
			media, _, _ = strings.Cut(media, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "*/*":
				return true, true
			case "application/json", "application/*":
				asJSON = true
			case "text/event-stream", "text/*":
				asStream = true
			}
		}
	}
	return asJSON, asStream
}
