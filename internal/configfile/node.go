package configfile

import (
	"slices"
	"strconv"
)

// A kind is the kind of a value, as named in messages.
type kind string

const (
	nothing kind = "nothing" // a file without a value
	null    kind = "null"
	boolean kind = "true or false"
	number  kind = "a number"
	text    kind = "a string"
	list    kind = "a list"
	object  kind = "an object"
	other   kind = "a value of another kind" // dates, aliases, values with a tag
)

// A node is a value of a file. Two files have the same values if their nodes are
// equal.
type node struct {
	kind    kind
	text    string // of a scalar; a number as written
	mark    string // the anchor and the tag of a YAML node
	items   []node // of a list
	members []member
}

// A member is a member of an object.
type member struct {
	name  node
	value node
}

// named reports whether a member has this name.
func (m member) named(name string) bool { return m.name.kind == text && m.name.text == name }

// get returns the index of the member with this name, or -1.
func (n node) get(name string) int {
	return slices.IndexFunc(n.members, func(m member) bool { return m.named(name) })
}

// parent returns the value at keys.
func (n node) parent(keys []string) (node, bool) {
	for _, k := range keys {
		i := n.get(k)
		if i < 0 {
			return node{}, false
		}
		n = n.members[i].value
	}
	return n, true
}

// index returns the index of the entry at place in its parent, or -1.
func (n node) index(place Place) int {
	if !place.List {
		return n.get(place.Name)
	}
	return slices.IndexFunc(n.items, func(item node) bool {
		i := item.get("name")
		return i >= 0 && item.members[i].value.kind == text && item.members[i].value.text == place.Name
	})
}

// find returns the entry at place.
func (n node) find(place Place) (node, bool) {
	parent, ok := n.parent(place.Keys)
	if !ok {
		return node{}, false
	}
	switch i := parent.index(place); {
	case i < 0:
		return node{}, false
	case place.List:
		return parent.items[i], true
	default:
		return parent.members[i].value, true
	}
}

// with returns the node with the entry at place. The parents that are missing are
// added, at the end.
func (n node) with(place Place, entry node) node {
	if len(place.Keys) > 0 {
		n.kind, n.text = object, ""
		rest := place
		rest.Keys = place.Keys[1:]
		n.members = slices.Clone(n.members)
		i := n.get(place.Keys[0])
		if i < 0 {
			i = len(n.members)
			n.members = append(n.members, member{name: node{kind: text, text: place.Keys[0]}})
		}
		n.members[i].value = n.members[i].value.with(rest, entry)
		return n
	}
	i := n.index(place)
	n.text = ""
	if place.List {
		n.kind, n.items = list, slices.Clone(n.items)
		if i < 0 {
			n.items = append(n.items, entry)
		} else {
			n.items[i] = entry
		}
		return n
	}
	n.kind, n.members = object, slices.Clone(n.members)
	if i < 0 {
		n.members = append(n.members, member{node{kind: text, text: place.Name}, entry})
	} else {
		n.members[i].value = entry
	}
	return n
}

// without returns the node without the entry at place, which must be there.
func (n node) without(place Place) node {
	if len(place.Keys) > 0 {
		i := n.get(place.Keys[0])
		rest := place
		rest.Keys = place.Keys[1:]
		n.members = slices.Clone(n.members)
		n.members[i].value = n.members[i].value.without(rest)
		return n
	}
	i := n.index(place)
	if place.List {
		n.items = slices.Delete(slices.Clone(n.items), i, i+1)
	} else {
		n.members = slices.Delete(slices.Clone(n.members), i, i+1)
	}
	return n
}

// equal reports whether two nodes are equal.
func (n node) equal(o node) bool {
	return n.kind == o.kind && n.text == o.text && n.mark == o.mark &&
		slices.EqualFunc(n.items, o.items, node.equal) &&
		slices.EqualFunc(n.members, o.members, func(a, b member) bool {
			return a.name.equal(b.name) && a.value.equal(b.value)
		})
}

// plain returns the node as values of Go.
func (n node) plain() any {
	switch n.kind {
	case text:
		return n.text
	case boolean:
		return n.text == "true"
	case number:
		if i, err := strconv.Atoi(n.text); err == nil {
			return i
		}
		f, _ := strconv.ParseFloat(n.text, 64)
		return f
	case list:
		items := make([]any, 0, len(n.items))
		for _, item := range n.items {
			items = append(items, item.plain())
		}
		return items
	case object:
		members := map[string]any{}
		for _, m := range n.members {
			members[m.name.text] = m.value.plain()
		}
		return members
	}
	return nil
}

// entryNode returns the node of an entry.
func entryNode(entry []Member) node {
	n := node{kind: object}
	for _, m := range entry {
		n.members = append(n.members, member{node{kind: text, text: m.Name}, valueNode(m.Value)})
	}
	return n
}

// valueNode returns the node of the value of a member.
func valueNode(value any) node {
	switch v := value.(type) {
	case string:
		return node{kind: text, text: v}
	case bool:
		return node{kind: boolean, text: strconv.FormatBool(v)}
	case int:
		return node{kind: number, text: strconv.Itoa(v)}
	case []string:
		n := node{kind: list}
		for _, s := range v {
			n.items = append(n.items, node{kind: text, text: s})
		}
		return n
	case []Member:
		return entryNode(v)
	}
	return node{kind: null}
}
