import { copyFileSync, mkdirSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect, hit, open, query, search, test, violations } from './console.mjs';
import { folder, indexed } from './server.mjs';

test('a search finds a passage and opens it', async ({ page, origin }) => {
  await open(page, origin);
  await search(page, 'how many days of holidays');
  await hit(page, 'Holidays and leave').click();
  await expect(page.getByRole('heading', { level: 1, name: 'Holidays and leave' })).toBeVisible();
  await expect(page.getByText('30 days of paid').first()).toBeInViewport();
});

test('results follow what is typed, and the address, back and reload lead to them', async ({ page, origin }) => {
  await open(page, origin);
  await query(page).pressSequentially('parental leave');
  await expect(hit(page, 'Holidays and leave')).toBeVisible(); // without Enter
  await expect(page).toHaveURL(/parental/);
  await query(page).fill('parcels');
  await expect(hit(page, /limits/)).toBeVisible();
  await hit(page, /limits/).click();
  await expect(page.getByRole('heading', { level: 1, name: /limits/ })).toBeVisible();
  await page.goBack();
  await expect(hit(page, /limits/)).toBeVisible();
  await expect(query(page)).toHaveValue('parcels');
  await page.reload();
  await expect(hit(page, /limits/)).toBeVisible();
  await expect(query(page)).toHaveValue('parcels');
});

test('what is typed before the server answers is searched', async ({ page, origin }) => {
  let release;
  const held = new Promise(done => { release = done; });
  await page.route('**/console/status', async route => { await held; await route.continue(); });
  await open(page, origin);
  await search(page, 'parental leave');
  release();
  await expect(query(page)).toHaveValue('parental leave');
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
});

test('filters, sorting and folding have addresses', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=holidays');
  const filters = page.getByRole('complementary', { name: 'Filters' });
  const hits = page.getByRole('main').getByRole('heading', { level: 2 });
  await expect(hits).not.toHaveCount(1);
  await filters.getByRole('checkbox', { name: /^PDF/ }).check();
  await expect(hits).toHaveText(['expenses.pdf']);
  await page.reload();
  await expect(hits).toHaveText(['expenses.pdf']);
  await expect(filters.getByRole('checkbox', { name: /^PDF/ })).toBeChecked();
  await filters.getByRole('checkbox', { name: /^Text/ }).check(); // the other kinds can still be chosen
  await expect(hits).not.toHaveCount(1);
  await page.goBack();
  await expect(hits).toHaveCount(1);
  await page.getByRole('link', { name: 'Remove all filters' }).click();
  await expect(hits).not.toHaveCount(1);

  await page.getByRole('combobox', { name: 'Sort by' }).selectOption('Name');
  await expect(page).toHaveURL(/sort=/);
  await expect(hits.first()).toHaveText('expenses.pdf')
  await page.getByRole('combobox', { name: 'Sort by' }).selectOption('Relevance');
  await expect(hits.first()).toHaveText('Holidays and leave');

  const fold = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Holidays and leave' }) }).getByRole('button').first();
  await expect(fold).toHaveAttribute('aria-expanded', 'true'); // the best passage is open
  await fold.click();
  await expect(fold).toHaveAttribute('aria-expanded', 'false');
  await expect(page.getByText('30 days of paid').first()).toBeHidden();

  // With a filter, a question still needs no document with all of its words.
  await open(page, origin + '/#/search?q=how+are+claims+of+penguins+paid%3F');
  await expect(hits).not.toHaveCount(1);
  await filters.getByRole('checkbox', { name: /^PDF/ }).check();
  await expect(hits).toHaveText(['expenses.pdf']);
});

test('a result shows rendered Markdown and highlighted code', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=length+notice+who+decides');
  await expect(page.getByRole('table').first()).toContainText('Who decides');
  await page.goto(origin + '/#/search?q=parcels+per+hour');
  await expect(page.locator('pre code .token.keyword').first()).toHaveText('def');
});

test('a search is shown as an agent sees it', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=parental+leave');
  await page.getByRole('link', { name: 'As an agent sees it' }).click();
  await expect(page.getByText(/"query": "parental leave"/)).toBeVisible();
  await expect(page.getByText(/"results": \[/)).toBeVisible();
  await expect(page.getByRole('heading', { name: /^Result .*tokens/ })).toBeVisible();
  await page.getByRole('link', { name: 'Back to the results' }).click();
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
});

test('a document opens at the passage, with its contents', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=test+of+a+restore+once+in+a+quarter');
  await hit(page, 'Backups').click();
  await expect(page.locator('.passage').first()).toBeInViewport();
  const contents = page.getByRole('navigation', { name: 'Sections' });
  await contents.getByRole('link', { name: 'Restore a backup' }).click();
  await expect(page.getByRole('heading', { name: 'Restore a backup' })).toBeInViewport();
  await page.goBack();
  await page.getByRole('link', { name: /Documents for/ }).click();
  await expect(hit(page, 'Backups')).toBeVisible();
});

test('a page of a PDF is named, and the original can be downloaded', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=allowance+for+meals');
  await expect(page.getByText('page 3').first()).toBeVisible();
  await page.getByRole('main').getByRole('link', { name: 'expenses.pdf' }).first().click();
  await expect(page.getByText('The allowance for meals').first()).toBeInViewport();
  const pages = page.getByRole('navigation', { name: 'Pages' }), mark = n => page.getByRole('heading', { name: 'Page ' + n });
  await expect(mark(3)).toBeAttached();
  await pages.getByRole('link', { name: 'Page 2' }).click();
  await expect(mark(2)).toBeInViewport();
  await expect(page.getByText('Trains are booked in second class')).toBeInViewport();
  await expect(pages.getByRole('link', { name: 'Page 2' })).toHaveAttribute('aria-current', 'true');
  await mark(3).getByRole('link').click(); // the address of a page can be kept
  await page.reload();
  await expect(mark(3)).toBeInViewport();
  expect(new URL(page.url()).hash).toContain('page=3');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Original' }).click();
  expect((await download).suggestedFilename()).toBe('expenses.pdf');
});

test('with the keyboard alone, one searches, moves through the results, reads and comes back', async ({ page, origin }) => {
  await open(page, origin);
  await expect(query(page)).toBeFocused();
  await page.keyboard.type('holidays');
  await expect(page.getByRole('heading', { name: 'Documents for holidays' })).toBeAttached();
  await page.keyboard.press('ArrowDown');
  await expect(page.getByRole('heading', { level: 2 }).getByRole('link').first()).toBeFocused();
  await page.keyboard.press('j');
  await expect(page.getByRole('heading', { level: 2 }).getByRole('link').nth(1)).toBeFocused();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/#\/read\?/);
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
  await page.keyboard.press('/');
  await expect(query(page)).toBeFocused();
  await page.keyboard.press('Tab'); // everything is in the order of the page, and visible
  for (let i = 0; i < 12; i++) {
    await expect(page.locator(':focus')).toBeInViewport();
    await page.keyboard.press('Tab');
  }
  await page.getByRole('heading', { level: 2 }).getByRole('link').first().focus();
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog')).toBeVisible();
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toBeHidden();
});

test('a link of a document leads to the document beside it, also if another source has the same path', async ({ page, servers }) => {
  const work = folder('links');
  for (const label of ['north', 'south']) {
    mkdirSync(path.join(work, label, 'guide'), { recursive: true });
    writeFileSync(path.join(work, label, 'guide', 'start.md'), `# Start in the ${label}\n\nGo on with [the next step](next.md).\n`);
    writeFileSync(path.join(work, label, 'guide', 'next.md'), `# Next step in the ${label}\n\nThat is all.\n`);
  }
  const server = await servers.start(['north', 'south'].map(label => path.join(work, label)));
  await indexed(server, undefined, 4);
  for (const label of ['north', 'south']) {
    await open(page, `${server.url}/#/search?q=${label}`);
    await hit(page, `Start in the ${label}`).click();
    await page.getByRole('article').getByRole('link', { name: 'the next step' }).click();
    await expect(page.getByRole('heading', { level: 1, name: `Next step in the ${label}` })).toBeVisible();
    await expect(page.getByRole('button', { name: 'Original' })).toBeVisible(); // the last request
  }
});

test('a query without words is refused with a sentence, and no results of another query stay', async ({ page, origin }) => {
  await open(page, origin + '/#/search?q=holidays&type=pdf');
  await expect(page.locator('.hit')).toHaveCount(1);
  for (const words of ['"', '-']) {
    await page.goto(origin + '/#/search?q=' + encodeURIComponent(words));
    await expect(page.getByText('Write at least one word.')).toBeVisible();
    await expect(page.locator('.hit')).toHaveCount(0);
    await expect(page.getByRole('checkbox')).toHaveCount(0);
    await expect(page.locator('body')).not.toContainText('argument');
  }
  await search(page, 'parental leave');
  await expect(hit(page, 'Holidays and leave')).toBeVisible();
});

test('the time of a change is one choice', async ({ page, servers }) => {
  const work = folder('times');
  for (const [name, time] of [['old', '2019-05-01'], ['new', new Date()]]) {
    writeFileSync(path.join(work, name + '.md'), `# The ${name} walrus\n`);
    utimesSync(path.join(work, name + '.md'), new Date(time), new Date(time));
  }
  const server = await servers.start([work]);
  await indexed(server, undefined, 2);
  await open(page, server.url + '/#/search?q=walrus');
  const changed = page.getByRole('group', { name: 'Changed' }), choice = name => changed.getByRole('radio', { name });
  await expect(choice('Any time')).toBeChecked();
  await choice('Last 7 days').check();
  await expect(page.locator('.hit')).toHaveCount(1);
  await expect(choice('Last 7 days')).toBeFocused();
  await choice('Last year').check();
  await expect(page).toHaveURL(/since=1y(&|$)/);
  await expect(choice('Last 7 days')).not.toBeChecked();
  await choice('Any time').check();
  await expect(page.locator('.hit')).toHaveCount(2);
});

test('a long passage is shown to its end with a button, and a result without passages has its excerpt', async ({ page, servers }) => {
  const work = folder('long');
  writeFileSync(path.join(work, 'list.md'), '# Herons\n\n' + Array.from({ length: 40 }, (_, i) => `- heron ${i}`).join('\n') + '\n');
  for (let i = 0; i < 9; i++) writeFileSync(path.join(work, `note-${i}.md`), `# Note ${i}\n\n` + `A sentence about herons of the lake number ${i}. `.repeat(60) + '\n');
  const server = await servers.start([work]);
  await indexed(server, undefined, 10);
  await open(page, server.url + '/#/search?q=herons');
  const list = page.getByRole('listitem').filter({ has: page.getByRole('heading', { name: 'Herons', exact: true }) });
  const all = list.getByRole('button', { name: 'Show all' });
  await expect(all).toBeVisible();
  await all.click();
  await expect(all).toHaveCount(0);
  const text = list.locator('.passage-text');
  await expect(text).toBeFocused();
  expect(await text.evaluate(e => e.scrollHeight <= e.clientHeight)).toBe(true);
  for (const hit of await page.locator('.hit').all()) await expect(hit.locator('.passage-text, .plain').first()).toContainText(/heron/i);
});

test('a link to a heading leads to the heading, in the document and in another one', async ({ page, servers }) => {
  const work = folder('anchors'), long = 'A line of a long text.\n\n'.repeat(80);
  writeFileSync(path.join(work, 'install.md'), `# Installing\n\nSee [the options](usage.md#--all-options) and [the end](#the-end).\n\n${long}## The end\n\n${long}`);
  writeFileSync(path.join(work, 'usage.md'), `# Usage\n\n${long}## \`--all\` options\n\n${long}## More\n\ntext\n`);
  const server = await servers.start([work]);
  await indexed(server, undefined, 2);
  await open(page, server.url + '/#/read?path=install.md');
  await page.getByRole('article').getByRole('link', { name: 'the end' }).click();
  await expect(page.getByRole('heading', { name: 'The end' })).toBeInViewport();
  await page.goBack();
  await page.getByRole('article').getByRole('link', { name: 'the options' }).click();
  await expect(page.getByRole('heading', { level: 1, name: 'Usage' })).toBeAttached();
  await expect(page.getByRole('heading', { name: '--all options' })).toBeInViewport();
  await expect(page.getByRole('button', { name: 'Original' })).toBeVisible(); // the last request
});

test('a very long document has contents, and its parts are read one after another', async ({ page, servers }) => {
  const work = folder('chapters');
  writeFileSync(path.join(work, 'book.md'), '# The book\n' + Array.from({ length: 1500 }, (_, i) => `\n## Chapter ${i}\n\n${'Words of a story. '.repeat(8)}\n\n### Notes ${i}\n\ntext\n`).join(''));
  writeFileSync(path.join(work, 'table.txt'), 'Name      Size\n==========\nsmall     1\nlarge     2\n');
  const server = await servers.start([work]);
  await indexed(server, undefined, 2);
  await open(page, server.url + '/#/read?path=book.md&at=150000');
  const contents = page.getByRole('complementary', { name: 'Contents' });
  await expect(contents.getByRole('link', { name: 'Chapter 5', exact: true })).toBeVisible();
  await expect(contents).toContainText('more sections');
  await page.getByRole('button', { name: 'Text after' }).click();
  await expect(page.locator('.body :focus')).toBeInViewport();
  const first = page.locator('.body [data-offset]').first(), offset = await first.getAttribute('data-offset');
  await page.getByRole('button', { name: 'Text before' }).click();
  await expect(first).not.toHaveAttribute('data-offset', offset);
  await expect(first).toBeFocused();
  expect(await violations(page)).toEqual([]);
  await open(page, server.url + '/#/read?path=table.txt'); // has columns
  await expect(page.getByText('large')).toHaveCSS('font-family', /mono/);
  await expect(page.getByRole('button', { name: 'Original' })).toBeVisible();
});

test('the navigation does not move between the views', async ({ page, origin }) => {
  await open(page, origin);
  const link = page.getByRole('navigation', { name: 'Views' }).getByRole('link', { name: 'Connect' }), places = [];
  for (const [view, title] of [['', /^Search/], ['sources', 'Sources'], ['connect', 'Connect an agent']]) {
    await page.goto(origin + '/#/' + view);
    await expect(page.getByRole('heading', { level: 1, name: title })).toBeVisible();
    places.push(Math.round((await link.boundingBox()).x));
  }
  expect(new Set(places).size).toBe(1);
});

test('a passage that begins inside of a block of code is shown as code up to its end', async ({ page, origin }) => {
  await open(page, origin);
  const whole = text => page.evaluate(text => wholeFences(text), text);
  expect(await whole('ls -l\n```\n\nText\n\n```bash\nx\n```')).toBe('```\nls -l\n```\n\nText\n\n```bash\nx\n```');
  expect(await whole('```\nText\n\n| a |')).toBe('\nText\n\n| a |');
  expect(await whole('Text\n```\nls')).toBe('Text\n```\nls');
});

test('slides are called slides, and each has its title once', async ({ page, servers }) => {
  const work = folder('slides');
  copyFileSync('internal/extract/testdata/documents/python-pptx.pptx', path.join(work, 'launch.pptx'));
  const server = await servers.start([work]);
  await indexed(server);
  await open(page, server.url + '/#/search?q=budget');
  await expect(page.locator('.hit').first()).toContainText('Slide 2: Budget');
  await expect(page.locator('.hit').first()).not.toContainText(/page \d/i);
  await expect(page.locator('.hit').first()).not.toContainText('slide 1'); // its heading names it
  await page.getByRole('main').getByRole('link', { name: 'Slide 1: Launch plan' }).click();
  await expect(page.getByRole('article').getByText('Slide 2')).toHaveCount(1);
  await expect(page.getByRole('heading', { name: 'Slide 2: Budget' })).toBeInViewport();
  await page.getByRole('navigation', { name: 'Sections' }).getByRole('link', { name: 'Slide 3 (hidden)' }).click();
  await expect(page.getByRole('heading', { name: 'Slide 3 (hidden)' })).toBeInViewport();
  await expect(page.getByRole('heading', { name: 'Slide 3 (hidden)' })).toBeFocused();
  await expect(page.getByRole('button', { name: 'Original' })).toBeVisible(); // the last request
});

test('a reader who comes back finds as many results as before, and a source is searched alone', async ({ page, servers }) => {
  const work = folder('many');
  for (const label of ['north', 'south']) mkdirSync(path.join(work, label));
  for (let i = 0; i < 15; i++) writeFileSync(path.join(work, 'north', `rule-${i}.md`), `# Rule ${i}\n\nRule ${i} is about pumps, valves and ${i} gaskets.\n`);
  writeFileSync(path.join(work, 'south', 'pump.md'), '# The other pump\n\nAll pumps of the south.\n');
  const server = await servers.start([path.join(work, 'north'), path.join(work, 'south')]);
  await indexed(server, undefined, 16);
  const hits = page.getByRole('main').getByRole('heading', { level: 2 });
  await open(page, server.url + '/#/search?in=north');
  await expect(page.getByRole('heading', { level: 1, name: 'Search north' })).toBeVisible();
  await search(page, 'pumps');
  await expect(page.getByText('15 documents', { exact: true }).first()).toBeVisible();
  await page.getByRole('button', { name: 'More documents' }).click();
  await expect(hits).toHaveCount(15);
  const twelfth = hits.nth(11).getByRole('link');
  const name = await twelfth.textContent();
  await twelfth.click();
  await expect(page.getByRole('heading', { level: 1, name })).toBeVisible();
  await page.goBack();
  await expect(hits).toHaveCount(15);
  await expect(hits.nth(11).getByRole('link')).toBeFocused();
});
