import { expect, open, query, test } from './console.mjs';

// What a screen reader finds: the accessibility tree of Chromium, from which the systems'
// interfaces are fed, in its order.

// spoken returns what a screen reader reads in the part of the page with a role, from its
// beginning to its end: roles that it names, with their names and states, and texts.
async function spoken(page, role) {
  const cdp = await page.context().newCDPSession(page);
  const { nodes } = await cdp.send('Accessibility.getFullAXTree');
  const byID = new Map(nodes.map(n => [n.nodeId, n])), said = [];
  const read = (n, inside) => {
    const properties = Object.fromEntries((n.properties || []).map(p => [p.name, p.value.value])), is = n.role?.value;
    const named = ['heading', 'link', 'button', 'checkbox', 'combobox', 'searchbox', 'navigation', 'complementary', 'article', 'listitem', 'columnheader', 'cell'];
    inside ||= is === role;
    if (inside && !n.ignored) {
      const states = ['level', 'expanded', 'checked', 'focused'].filter(s => s in properties && !(s === 'level' && is !== 'heading')).map(s => `${s}=${properties[s]}`);
      if (named.includes(is)) said.push([is, n.name?.value, ...states].filter(Boolean).join(' '));
      else if (is === 'StaticText') said.push(n.name.value.trim());
    }
    if (!['link', 'button'].includes(is)) for (const id of n.childIds || []) if (byID.has(id)) read(byID.get(id), inside);
  };
  read(nodes[0], false);
  await cdp.detach();
  return said.filter(Boolean);
}

// reads waits until texts and patterns are read one after another in a part of the page.
async function reads(page, role, wanted) {
  await expect(async () => {
    const said = await spoken(page, role);
    let at = -1;
    for (const w of wanted) {
      const next = said.findIndex((s, i) => i > at && (w instanceof RegExp ? w.test(s) : s === w));
      expect(next, `${w} comes after ${said[at]} in:\n${said.join('\n')}`).toBeGreaterThan(at);
      at = next;
    }
  }).toPass({ timeout: 20_000 });
}

// announced collects what live regions say.
const announced = page => page.evaluate(() => {
  window.said = [];
  for (const live of document.querySelectorAll('[aria-live], [role=status]')) {
    new MutationObserver(() => { if (live.textContent) window.said.push(live.textContent); }).observe(live, { childList: true, characterData: true, subtree: true });
  }
});

test('a screen reader finds its way: search, results, a document and back', async ({ page, origin }) => {
  await open(page, origin);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await reads(page, 'RootWebArea', ['link Skip to the content', 'link knowhow, start page', 'searchbox Search focused=true', 'navigation Views',
    'link Sources', /^heading Search .* documents level=1$/, 'heading Sources level=2', 'heading Changed last level=2']);

  await announced(page);
  await page.keyboard.type('how many days of holidays');
  await expect(page.getByRole('heading', { name: 'Documents for how many days of holidays' })).toBeAttached();
  await expect.poll(() => page.evaluate(() => window.said)).toContainEqual(expect.stringMatching(/^\d+ documents?$/));
  await expect(query(page)).toBeFocused();
  await reads(page, 'main', ['complementary Filters', /^checkbox .*checked=false$/, 'heading Documents for how many days of holidays level=1', /^\d+ documents?$/,
    'combobox Sort by expanded=false', 'link As an agent sees it', 'listitem', 'heading Holidays and leave level=2', 'link Holidays and leave', 'holidays.md',
    /^button Passage in .* expanded=true$/, /^Everybody has 30/, 'columnheader Length', 'cell up to 3 days', 'listitem', /^heading .* level=2$/]);

  const fold = page.getByRole('button', { name: /^Passage in/ }).first();
  await fold.press('Enter');
  await reads(page, 'main', [/^button Passage in .* expanded=false focused=true$/]);
  expect(await spoken(page, 'main')).not.toContainEqual(expect.stringMatching(/^Everybody has 30/));
  await fold.press('Enter');
  await reads(page, 'main', [/^button Passage in .* expanded=true focused=true$/, /^Everybody has 30/]);

  await page.getByRole('heading', { level: 2 }).getByRole('link', { name: 'Holidays and leave' }).press('Enter');
  await expect(page.getByRole('heading', { level: 1, name: 'Holidays and leave' })).toBeVisible();
  await expect(page).toHaveTitle('Holidays and leave – knowhow');
  await expect.poll(() => page.evaluate(() => window.said.at(-1))).toBe('Holidays and leave');
  await expect(page.locator(':focus')).toContainText('30 days of paid holidays'); // the passage is read
  await reads(page, 'main', ['complementary Contents', 'navigation Sections', 'link Request holidays', 'article', /^link ← Documents for/,
    /^heading Holidays and leave level=1/, /^Everybody has 30/, 'heading Request holidays level=2']);

  await page.keyboard.press('Escape');
  await expect(page.getByRole('heading', { level: 2 }).getByRole('link', { name: 'Holidays and leave' })).toBeFocused();
  await expect.poll(() => page.evaluate(() => window.said.at(-1))).toMatch(/^\d+ documents?$/);

  for (const [name, title] of [['Sources', 'Sources'], ['Notes', 'Notes'], ['Connect', 'Connect an agent']]) {
    await page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name }).press('Enter');
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeFocused();
    await expect(page).toHaveTitle(`${name} – knowhow`);
  }
});
