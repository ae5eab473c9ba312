package sanitize

// A Tail keeps the last Max bytes that are written to it, for example of the messages
// of a program that has failed.
type Tail struct {
	Max  int
	data []byte
}

// Write implements [io.Writer]. It returns no error.
func (t *Tail) Write(p []byte) (int, error) {
	t.data = append(t.data, p[max(0, len(p)-t.Max):]...)
	if over := len(t.data) - t.Max; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(p), nil
}

// String returns the bytes, which are foreign text.
func (t *Tail) String() string { return string(t.data) }
