// Servers for the tests.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';
import path from 'node:path';

const work = process.env.CONSOLE_WORK;
const knowhow = path.join(work, 'bin', 'knowhow');

// folder returns a new folder that is removed after the tests.
export const folder = name => mkdtempSync(path.join(work, name + '.'));

// serve starts knowhow serve and returns its address and what stops it. Without an
// embedder, it is ready at once.
export async function serve(args, { data = folder('data'), port = 0, embedder = 'none', env = {} } = {}) {
  const child = spawn(knowhow, ['serve', '--addr', `127.0.0.1:${port}`, '--data', data, '--embedder', embedder, ...args],
    { stdio: ['ignore', 'ignore', 'pipe'], env: { HOME: work, PATH: process.env.PATH, ...env } });
  const ended = new Promise(done => child.on('close', done));
  let log = '';
  const url = await new Promise((found, failed) => {
    createInterface({ input: child.stderr }).on('line', line => {
      log += line + '\n';
      const m = /^ {2}(http:\/\/127\.0\.0\.1:\d+)\/$/.exec(line);
      if (m) found(m[1]);
    });
    ended.then(() => failed(new Error('knowhow serve ended: ' + log)));
  });
  return {
    url, data, port: Number(new URL(url).port),
    log: () => log,
    stop: async () => { child.kill(); await ended; },
    kill: async () => { child.kill('SIGKILL'); await ended; },
  };
}

// dex starts the identity provider Dex, which sends browsers back to a URL, and returns
// its issuer and what stops it.
export async function dex(console) {
  const [port] = await freePorts(1);
  const child = spawn(path.join(work, 'bin', 'dex'), ['-addr', `127.0.0.1:${port}`, '-console', console], { stdio: 'ignore' });
  const ended = new Promise(done => child.on('close', done));
  const issuer = `http://127.0.0.1:${port}/dex`;
  for (const until = Date.now() + 60_000; ;) {
    if ((await fetch(issuer + '/.well-known/openid-configuration').catch(() => ({}))).ok) break;
    if (Date.now() > until || child.exitCode !== null) throw new Error('Dex does not start');
    await new Promise(done => setTimeout(done, 50));
  }
  return { issuer, stop: async () => { child.kill(); await ended; } };
}

// freePorts returns ports on which nothing listens. They are none of those that the system
// gives to connections, which could take them before a server does.
export const freePorts = n => Promise.all(Array.from({ length: n }, freePort));

function freePort() {
  return new Promise(found => {
    const listener = createServer();
    const listen = () => listener.listen(10000 + Math.floor(Math.random() * 20000), '127.0.0.1');
    listener.on('error', listen);
    listener.on('listening', () => {
      const { port } = listener.address();
      listener.close(() => found(port));
    });
    listen();
  });
}

// access runs knowhow access and returns what it prints.
export const access = (data, ...args) =>
  execFileSync(knowhow, ['access', ...args, '--access', path.join(data, 'access.json')], { encoding: 'utf8', env: { HOME: work }, stdio: ['ignore', 'pipe', 'pipe'] }).trim();

// dataset makes a dataset without vectors from a folder.
export const dataset = (datasets, name, id, from) =>
  execFileSync(knowhow, ['datasets', 'create', '--datasets', datasets, '--embedder', 'none', '--name', name, id, from], { env: { HOME: work }, stdio: 'ignore' });

// indexed waits until a server has indexed all its sources, with at least so many
// documents together, and computed their vectors.
export async function indexed(server, token, documents = 1) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  for (const until = Date.now() + 120_000; ;) {
    const answer = await fetch(server.url + '/console/status', { headers });
    if (answer.ok) {
      const { sources, vectors } = await answer.json();
      if (sources.reduce((n, s) => n + s.documents, 0) >= documents && sources.every(s => s.kind && !s.documents || s.documents > 0 && !s.indexing) && (!vectors || vectors.done === vectors.total)) return;
    }
    if (Date.now() > until) throw new Error('the sources are not indexed: ' + server.log());
    await new Promise(done => setTimeout(done, 50));
  }
}
