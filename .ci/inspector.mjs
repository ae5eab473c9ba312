// The checks of .ci/inspector. Arguments: the path of the Inspector, a work
// folder with bin/knowhow and bin/fakefess, and the path of the repository.
import { spawn, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { writeFileSync, mkdirSync } from 'node:fs';
import { createHash } from 'node:crypto';

const [inspector, work, root] = process.argv.slice(2);
const knowhow = `${work}/bin/knowhow`;
let passed = 0, failed = 0;
const children = [];

function check(name, ok, detail) {
  if (ok) { passed++; return; }
  failed++;
  console.error(`FAIL ${name}: ${detail}`);
}

// inspect runs one Inspector command and returns its JSON output.
function inspect(target, ...args) {
  const base = ['--cli', '--format', 'json', ...args];
  const argv = target.url ? [...base, '--server-url', target.url, '--transport', 'http'] : [...base, '--', ...target.command];
  const out = execFileSync('node', [inspector, ...argv], { encoding: 'utf8', timeout: 60000, maxBuffer: 64 << 20, stdio: ['ignore', 'pipe', 'pipe'] });
  const answer = JSON.parse(out);
  return answer.result ?? answer;
}

// call calls a tool and returns the JSON in its text.
function call(target, tool, args) {
  const r = inspect(target, '--method', 'tools/call', '--tool-name', tool, '--tool-args-json', JSON.stringify(args));
  return JSON.parse(r.content[0].text);
}

// start runs a server and returns the first line that matches.
async function start(command, stream, pattern) {
  const child = spawn(command[0], command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] });
  children.push(child);
  const lines = createInterface({ input: child[stream] });
  child[stream === 'stdout' ? 'stderr' : 'stdout'].resume();
  for await (const line of lines) {
    const m = line.match(pattern);
    if (m) { child[stream].resume(); return m[1]; }
  }
  throw new Error(`${command.join(' ')}: ended without ${pattern}`);
}

async function everything(name, target, id, query) {
  const prefix = target.prefix ?? `fess_${id}_`;
  const expected = ['search', 'suggest', 'popular_words', 'list_labels', 'health', 'get_document', 'read_content'].map(t => prefix + t);
  const tools = inspect(target, '--method', 'tools/list').tools.map(t => t.name);
  check(`${name} tools/list`, expected.every(t => tools.includes(t)), tools.join(' '));
  let page;
  for (let i = 0; i < 40; i++) { // a folder is indexed while it is served
    page = call(target, `${prefix}search`, { query, sort: 'content_length.desc' });
    if (page.total > 0) break;
  }
  check(`${name} search`, page.total > 0 && page.results[0].doc_id, JSON.stringify(page));
  const doc = page.results[0].doc_id;
  check(`${name} suggest`, Array.isArray(call(target, `${prefix}suggest`, { prefix: query.slice(0, 2) }).suggestions), 'no list');
  check(`${name} popular_words`, Array.isArray(call(target, `${prefix}popular_words`, {}).words), 'no list');
  check(`${name} list_labels`, call(target, `${prefix}list_labels`, {}).labels.length > 0, 'no label');
  check(`${name} health`, call(target, `${prefix}health`, {}).status === 'green', 'not green');
  check(`${name} get_document`, call(target, `${prefix}get_document`, { docId: doc }).doc_id === doc, 'another document');

  let text = '', chunks = 0, part = {};
  do {
    part = call(target, `${prefix}read_content`, part.nextCursor ? { docId: doc, cursor: part.nextCursor } : { docId: doc });
    text += part.text;
    chunks++;
  } while (!part.isLast && chunks < 1000);
  const hash = 'sha256:' + createHash('sha256').update(text).digest('hex');
  check(`${name} read_content`, hash === part.hash, `${chunks} chunks give ${hash}, want ${part.hash}`);
  if (target.small) check(`${name} chunks`, chunks > 1, `${chunks} chunk`);

  const uri = `${target.prefix ? 'knowhow' : 'fess'}://${id}/doc/${doc}`;
  const list = inspect(target, '--method', 'resources/list').resources;
  check(`${name} resources/list`, list.some(r => r.uri === uri), `${list.length} resources`);
  const templates = inspect(target, '--method', 'resources/templates/list').resourceTemplates;
  check(`${name} templates`, templates.length === 2, JSON.stringify(templates));
  const read = inspect(target, '--method', 'resources/read', '--uri', `${uri}/content`);
  check(`${name} resources/read`, text.startsWith(read.contents[0].text), 'another text');
  console.log(`${name}: ${chunks} chunks read`);
}

try {
  const data = kind => ['--data', `${work}/data-${kind}`];
  await everything('serve stdio', { command: [knowhow, 'serve', '--transport', 'stdio', '--tools', 'search,fess', ...data('stdio'), `${root}/docs`], prefix: 'docs_' }, 'docs', 'knowhow');
  const served = await start([knowhow, 'serve', '--addr', '127.0.0.1:0', '--tools', 'search,fess', ...data('http'), `${root}/docs`], 'stderr', /^listening on (\S+)$/);
  await everything('serve http', { url: served, prefix: 'docs_' }, 'docs', 'knowhow');

  const fess = await start([`${work}/bin/fakefess`], 'stdout', /^(http\S+)$/);
  mkdirSync(`${work}/fess`);
  const config = `${work}/fess/config.json`;
  writeFileSync(config, JSON.stringify({ fessBaseUrl: fess, domain: { id: 'finance', name: 'Finance', labelFilter: 'finance' }, limits: { maxChunkBytes: 1024 } }));
  await everything('fess stdio', { command: [knowhow, 'fess', '--config', config], small: true }, 'finance', 'budget');
  const bridged = await start([knowhow, 'fess', '--config', config, '--transport', 'http'], 'stderr', /^listening on (\S+)$/);
  await everything('fess http', { url: bridged, small: true }, 'finance', 'budget');
} finally {
  for (const c of children) c.kill();
}
console.log(`inspector: ${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
