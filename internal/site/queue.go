package site

import (
	"container/heap"
	"slices"
)

// A visit is an address that is to be visited.
type visit struct {
	address string
	depth   int // links from the first page
	hops    int // redirects that led to it
	query   bool
	again   bool // the second attempt of a round
	order   int
}

// A queue has the visits to come: those without a query first, then by depth, then in
// the order in which they were added.
type queue struct {
	list  visits
	added int
}

func (q *queue) push(v visit) {
	q.added++
	v.order = q.added
	heap.Push(&q.list, v)
}

func (q *queue) pop() (visit, bool) {
	if len(q.list) == 0 {
		return visit{}, false
	}
	return heap.Pop(&q.list).(visit), true
}

// removeAgain removes second attempts.
func (q *queue) removeAgain() {
	q.list = slices.DeleteFunc(q.list, func(v visit) bool { return v.again })
	heap.Init(&q.list)
}

// visits is a heap.
type visits []visit

func (l visits) Len() int      { return len(l) }
func (l visits) Swap(i, j int) { l[i], l[j] = l[j], l[i] }
func (l visits) Less(i, j int) bool {
	a, b := l[i], l[j]
	switch {
	case a.query != b.query:
		return b.query
	case a.depth != b.depth:
		return a.depth < b.depth
	}
	return a.order < b.order
}
func (l *visits) Push(x any) { *l = append(*l, x.(visit)) }
func (l *visits) Pop() any {
	old := *l
	last := old[len(old)-1]
	*l = old[:len(old)-1]
	return last
}
