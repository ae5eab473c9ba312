// Starts the server that most tests share: the handbook, hostile documents and a
// knowledge base, with vectors. The tests do not change it.
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { writeHostile, writePDF } from './documents.mjs';
import { indexed, serve } from './server.mjs';

export default async function setup() {
  const work = process.env.CONSOLE_WORK, handbook = path.join(work, 'handbook'), foreign = path.join(work, 'foreign');
  cpSync(path.join(import.meta.dirname, 'handbook'), handbook, { recursive: true });
  // Each page is long enough to be a passage of its own.
  const rules = Array.from({ length: 24 }, (_, i) => `Rule ${i + 1}: keep the receipt of each payment, and write down for which order it was.`);
  writePDF(path.join(handbook, 'expenses.pdf'), [
    ['Expenses', 'Claims are paid within ten days, also during holidays.', ...rules],
    ['Travel', 'Trains are booked in second class. A taxi needs a reason.', ...rules],
    ['Meals', 'The allowance for meals is 28 euros a day.', ...rules],
  ]);
  mkdirSync(foreign);
  writeHostile(foreign);
  const server = await serve(['--tools', 'search,fess,kb', '--description', 'Rules and guides of the company', handbook, foreign, 'kb'],
    { embedder: 'builtin' });
  await indexed(server, undefined, 17);
  process.env.CONSOLE_URL = server.url;
  return () => server.stop();
}
