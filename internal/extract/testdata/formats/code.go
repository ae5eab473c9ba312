// Package invoice prints invoices.
package invoice

import "fmt"

// An InvoicePrinter prints invoices.
type InvoicePrinter struct {
	out string
}

/*
func notThis() {}
*/

// PrintAll prints all invoices.
// It never fails.
func (p *InvoicePrinter) PrintAll(names []string) error {
	f := func(s string) { fmt.Println(s) }
	for _, n := range names {
		f(n)
	}
	return nil
}

func helper() {}
