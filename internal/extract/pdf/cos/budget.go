package cos

import (
	"fmt"

	"knowhow/internal/errkind"
)

// checkEvery is how many steps pass between two calls of a Budget's check:
// about a millisecond.
const checkEvery = 1 << 16

// The errors of a Budget that is used up.
var (
	errSteps  = fmt.Errorf("PDF document with more work than is allowed for one document: %w", errkind.TooLarge)
	errMemory = fmt.Errorf("PDF document that takes more memory than is allowed for one document: %w", errkind.TooLarge)
)

// A Budget bounds the work and the memory that a document may take, however
// its parts refer to each other. A step is about a byte that is read or
// decoded, or ten nanoseconds.
//
// Once a Budget has refused something it refuses everything, so that all work
// soon ends. A test checks that no result of Spend and Alloc is dropped.
type Budget struct {
	steps int          // left
	pause int          // the value of steps at which check is called next
	bytes int          // left
	check func() error // nil where there is none
	err   error        // why everything is refused
}

// NewBudget returns a budget of that many steps and bytes. check is called
// now and then, and its error ends the work; nil checks nothing.
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

// Spend takes n steps, before the work is done or while it is. It reports
// false where the caller must stop.
func (b *Budget) Spend(n int) bool {
	b.steps -= n
	return b.steps >= b.pause || b.settle()
}

// settle is the rest of Spend, where a bound was reached or check is due.
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
	if b.err == nil && n > b.bytes {
		b.err = errMemory
	}
	if b.err != nil {
		b.steps, b.pause = -1, 0
		return false
	}
	b.bytes -= n
	return true
}

// Free gives back bytes that Alloc took.
func (b *Budget) Free(n int) { b.bytes += n }

// Err returns why work was refused: an error of kind [errkind.TooLarge], or
// that of the check; nil where all work was done.
func (b *Budget) Err() error { return b.err }
