package ingest

// Folders that a trail keeps open: the last openFolders of it, and before them
// every openFolders-th, up to the same number. So at most twice as many are
// open.
const openFolders = 64

// A trail is the path from the folder of a tree to the folder that a walk is
// listing. Each folder is opened inside the one above it, because opening it by
// its path would open all folders above it again. A folder that the trail has
// closed is opened again when the walk returns to it.
type trail struct {
	names []string     // of the folders; that of the tree is ""
	open  []openFolder // nil if closed; the first is always open
}

func newTrail(t tree) (*trail, error) {
	f, err := t.Folder()
	if err != nil {
		return nil, err
	}
	return &trail{names: []string{""}, open: []openFolder{f}}, nil
}

// enter opens a folder inside the last one.
func (t *trail) enter(name string) error {
	f, err := t.last()
	if err != nil {
		return err
	}
	if f, err = f.Folder(name); err != nil {
		return err
	}
	t.names, t.open = append(t.names, name), append(t.open, nil)
	t.keepOpen(len(t.open)-1, f)
	return nil
}

// last returns the last folder, which still belongs to the trail.
func (t *trail) last() (openFolder, error) {
	end := len(t.open) - 1
	i := end
	for t.open[i] == nil {
		i--
	}
	for ; i < end; i++ {
		f, err := t.open[i].Folder(t.names[i+1])
		if err != nil {
			return nil, err
		}
		t.keepOpen(i+1, f)
	}
	return t.open[end], nil
}

// keepOpen keeps folder number i open and closes the folder that is too far above
// it.
func (t *trail) keepOpen(i int, f openFolder) {
	t.open[i] = f
	if far := i - openFolders; far > 0 && (far%openFolders != 0 || far/openFolders >= openFolders) {
		t.release(far)
	}
}

func (t *trail) release(i int) {
	if t.open[i] != nil {
		t.open[i].Close()
		t.open[i] = nil
	}
}

// leave returns to the folder above.
func (t *trail) leave() {
	end := len(t.open) - 1
	t.release(end)
	t.names, t.open = t.names[:end], t.open[:end]
}

// close closes all folders.
func (t *trail) close() {
	for i := range t.open {
		t.release(i)
	}
}
