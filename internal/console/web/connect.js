const CONNECT = {name: 'connect', title: 'Connect', available: () => false, show() {}, hide() {}};
