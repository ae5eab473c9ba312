package kbserver

import "slices"

// Operations returns the methods and paths that are handled, sorted.
func Operations() []string {
	var all []string
	for _, o := range operations {
		all = append(all, o.method+" "+o.path)
	}
	slices.Sort(all)
	return all
}
