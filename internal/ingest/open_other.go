//go:build !unix

package ingest

// nonBlocking is not needed where pipes are not files of a folder.
const nonBlocking = 0
