package cos

// A Budget bounds the work that a document may cause, however its parts refer
// to each other. A step is about a byte that is read or decoded.
type Budget struct {
	Left int // steps; negative once work was refused
}

// Spend takes n steps. It reports false from the moment on that none is left;
// whoever loops must then stop.
func (b *Budget) Spend(n int) bool {
	b.Left -= min(max(n, 0), 1<<40)
	if b.Left < 0 {
		b.Left = -1
		return false
	}
	return true
}

// Spent reports whether work was left undone.
func (b *Budget) Spent() bool { return b.Left < 0 }
