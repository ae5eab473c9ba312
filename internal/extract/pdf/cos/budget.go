package cos

import (
	"fmt"

	"github.com/knowhow-mcp/knowhow/internal/errkind"
)

// checkEvery is the number of steps between two calls of a Budget's check:
// about a millisecond of work.
const checkEvery = 1 << 16

// Errors of an exhausted Budget.
var (
	errSteps = fmt.Errorf("PDF document that takes more work than is allowed for one document: split it, or convert it to another format: %w", errkind.TooLarge)
	// ErrMemory is returned by Budget.Err.
	ErrMemory = fmt.Errorf("PDF document that takes more memory than is allowed for one document: split it, or convert it to another format: %w", errkind.TooLarge)
)

// A Budget limits the work and the memory that a document may take, independent
// of the references between its parts. A step is about a byte that is read or
// decoded. Memory is counted in bytes that are in use at the same time.
//
// Once a Budget has refused a request, it refuses every further one, so that
// all work ends soon. TestBudgetIsObeyed checks that no caller ignores a
// refusal.
type Budget struct {
	steps int          // left
	pause int          // the value of steps at which check is due
	bytes int          // left
	check func() error // may be nil
	err   error        // the reason for refusals
}

// NewBudget returns a budget of a number of steps and bytes. check is called
// periodically, and an error of it ends the work; it may be nil.
func NewBudget(steps, bytes int, check func() error) *Budget {
	b := &Budget{steps: steps, bytes: bytes, check: check}
	b.schedule()
	return b
}

// schedule determines when check is called next.
func (b *Budget) schedule() {
	b.pause = 0
	if b.check != nil {
		b.pause = max(0, b.steps-checkEvery)
	}
}

// Spend spends n steps. If it returns false, the caller must stop.
func (b *Budget) Spend(n int) bool {
	b.steps -= n
	return b.steps >= b.pause || b.settle()
}

// settle is the slow path of Spend.
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

// Alloc reserves n bytes of memory, before they are allocated. If it returns
// false, the caller must stop.
func (b *Budget) Alloc(n int) bool {
	if n > b.bytes && b.err == nil {
		b.err = ErrMemory
		b.steps, b.pause = -1, 0
	}
	b.bytes -= n
	return b.err == nil
}

// Memory returns how many bytes are left.
func (b *Budget) Memory() int { return b.bytes }

// Free releases n bytes reserved by Alloc.
func (b *Budget) Free(n int) { b.bytes += n }

// Err returns the reason for refusals: an error of kind [errkind.TooLarge], or
// the error of the check. It returns nil if nothing was refused.
func (b *Budget) Err() error { return b.err }

// A Share is a part of a Budget's memory that is released at one time. Its zero
// value belongs to no budget.
type Share struct {
	b *Budget
	n int // bytes
}

// Share returns a share without memory.
func (b *Budget) Share() Share { return Share{b: b} }

// Alloc reserves n more bytes, like [Budget.Alloc].
func (s *Share) Alloc(n int) bool {
	s.n += n
	return s.b.Alloc(n)
}

// Size returns how many bytes the share has.
func (s *Share) Size() int { return s.n }

// Free releases all memory of the share, which can be used again.
func (s *Share) Free() {
	s.b.Free(s.n)
	s.n = 0
}

// take moves the memory of another share to this one.
func (s *Share) take(from *Share) {
	s.n += from.n
	from.n = 0
}
