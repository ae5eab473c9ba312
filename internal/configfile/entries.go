package configfile

// Entries returns the entries at a place, whose Name is ignored, by their names. The
// values are those of [Get]. Entries that are not objects are left out. It is no error
// if there is no object with entries.
func Entries(format Format, data []byte, place Place) (map[string]map[string]any, error) {
	f, err := parse(format, data)
	if err != nil {
		return nil, err
	}
	entries := map[string]map[string]any{}
	add := func(name, entry node) {
		if name.kind == text && entry.kind == object {
			entries[name.text] = entry.plain().(map[string]any)
		}
	}
	parent, _ := f.root.parent(place.Keys)
	if !place.List {
		for _, m := range parent.members {
			add(m.name, m.value)
		}
		return entries, nil
	}
	for _, item := range parent.items {
		if i := item.get("name"); i >= 0 {
			add(item.members[i].value, item)
		}
	}
	for _, entry := range entries {
		delete(entry, "name")
	}
	return entries, nil
}
