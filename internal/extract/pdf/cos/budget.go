package cos

import (
	"fmt"

	"knowhow/internal/errkind"
)

// checkEvery is how many steps pass between two calls of a Budget's check:
// about a millisecond of work.
const checkEvery = 1 << 16

// The errors of a Budget that is used up.
var (
	errSteps  = fmt.Errorf("PDF document that takes more work than is allowed for one document: split it, or convert it to another format: %w", errkind.TooLarge)
	errMemory = fmt.Errorf("PDF document that takes more memory than is allowed for one document: split it, or convert it to another format: %w", errkind.TooLarge)
)

// A Budget bounds the work and the memory that a document may take, however
// its parts refer to each other. A step is about a byte that is read or
// decoded; memory is counted in bytes that are in use at the same time.
//
// Once a Budget has refused something, it refuses everything, so that all work
// ends soon. TestBudgetIsObeyed checks that no caller ignores a refusal.
type Budget struct {
	steps int          // left
	pause int          // the value of steps at which check is due
	bytes int          // left
	check func() error // nil where there is none
	err   error        // why everything is refused
}

// NewBudget returns a budget of a number of steps and bytes. check is called
// now and then, and an error of it ends the work; nil checks nothing.
func NewBudget(steps, bytes int, check func() error) *Budget {
	b := &Budget{steps: steps, bytes: bytes, check: check}
	b.schedule()
	return b
}

// schedule sets when check is called next.
func (b *Budget) schedule() {
	b.pause = 0
	if b.check != nil {
		b.pause = max(0, b.steps-checkEvery)
	}
}

// Spend takes n steps. It reports false where the caller must stop.
func (b *Budget) Spend(n int) bool {
	b.steps -= n
	return b.steps >= b.pause || b.settle()
}

// settle is the part of Spend that is seldom needed.
func (b *Budget) settle() bool {
	switch {
	case b.err != nil:
	case b.steps < 0:
		b.err = errSteps
	case b.check != nil:
		b.err = b.check()
	}
	if b.err != nil {
		b.steps, b.pause = -1, 0
		return false
	}
	b.schedule()
	return true
}

// Alloc takes n bytes of memory, before they are allocated. It reports false
// where the caller must stop.
func (b *Budget) Alloc(n int) bool {
	if n > b.bytes && b.err == nil {
		b.err = errMemory
		b.steps, b.pause = -1, 0
	}
	b.bytes -= n
	return b.err == nil
}

// Memory returns how many bytes are left.
func (b *Budget) Memory() int { return b.bytes }

// Free gives back n bytes that Alloc took.
func (b *Budget) Free(n int) { b.bytes += n }

// Err returns why work was refused: an error of kind [errkind.TooLarge], or
// the error of the check; nil where nothing was refused.
func (b *Budget) Err() error { return b.err }

// A Share is the part of a Budget's memory that is given back at one time. Its
// zero value belongs to no budget.
type Share struct {
	b *Budget
	n int // bytes
}

// Share returns a share without memory.
func (b *Budget) Share() Share { return Share{b: b} }

// Alloc takes n bytes more, as [Budget.Alloc] does.
func (s *Share) Alloc(n int) bool {
	s.n += n
	return s.b.Alloc(n)
}

// Size returns how many bytes the share has.
func (s *Share) Size() int { return s.n }

// Free gives back all memory of the share, which can be used again.
func (s *Share) Free() {
	s.b.Free(s.n)
	s.n = 0
}

// take moves the memory of another share to this one.
func (s *Share) take(from *Share) {
	s.n += from.n
	from.n = 0
}
