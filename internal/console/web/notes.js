const NOTES = {name: 'notes', title: 'Notes', available: () => false, show() {}, hide() {}};
