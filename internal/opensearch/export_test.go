package opensearch

// MappingVersion is mappingVersion.
const MappingVersion = mappingVersion

// WithVersion returns options for indexes of another version.
func WithVersion(o Options, version int) Options {
	o.version = meta{version, version}
	return o
}
