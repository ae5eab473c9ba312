package fessmcp

import "knowhow/internal/schema"

// Schemas are sent in every session and read by every model, so descriptions do
// not repeat the names of arguments.

func text(about string) schema.Schema {
	return schema.Schema{Type: "string", Description: about}
}

// integer returns the schema of an integer; def nil means no default.
func integer(about string, min, max int, def any) schema.Schema {
	lo, hi := float64(min), float64(max)
	return schema.Schema{Type: "integer", Description: about, Minimum: &lo, Maximum: &hi, Default: def}
}

func textList(about string) schema.Schema {
	return schema.Schema{Type: "array", Description: about, Items: &schema.Schema{Type: "string"}}
}
