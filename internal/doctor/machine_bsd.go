//go:build unix && !linux

package doctor

// listener returns "": the process is not known.
func listener(int) string { return "" }

// watches returns 0: the number of folders is not limited.
func watches() int { return 0 }
