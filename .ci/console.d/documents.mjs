// Documents that the tests write: what a reader of the repository could not check.
import { writeFileSync } from 'node:fs';
import path from 'node:path';

// writePDF writes a PDF file with lines of text on each page.
export function writePDF(file, pages) {
  const objects = ['<< /Type /Catalog /Pages 2 0 R >>', '', '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>'];
  const kids = pages.map(lines => {
    const text = 'BT /F1 14 Tf 72 760 Td ' + lines.map(l => `(${l.replace(/[()\\]/g, '\\$&')}) Tj 0 -24 Td `).join('') + 'ET';
    const content = objects.push(`<< /Length ${text.length} >>\nstream\n${text}\nendstream`);
    return objects.push('<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] ' +
      `/Resources << /Font << /F1 3 0 R >> >> /Contents ${content} 0 R >>`);
  });
  objects[1] = `<< /Type /Pages /Count ${kids.length} /Kids [${kids.map(k => `${k} 0 R`).join(' ')}] >>`;
  let text = '%PDF-1.4\n', table = '';
  objects.forEach((o, i) => {
    table += `${String(text.length).padStart(10, '0')} 00000 n \n`;
    text += `${i + 1} 0 obj\n${o}\nendobj\n`;
  });
  writeFileSync(file, `${text}xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}` +
    `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${text.length}\n%%EOF\n`, 'latin1');
}

// hostile are texts that would run a script or send a request if any of it were read as
// HTML, or if an address in them were used unchecked. Each has the word pelican.
const hostile = {
  'html.md': `# <script>attacked = 1</script> pelican

<script>attacked = 1</script>
<img src="http://beacon.invalid/html.png" onerror="attacked = 1">
<svg onload="attacked = 1"><a xlink:href="javascript:attacked = 1"><text>pelican</text></a></svg>
<iframe src="http://beacon.invalid/frame" srcdoc="<script>top.attacked = 1</script>"></iframe>
<details open ontoggle="attacked = 1"><summary onclick="attacked = 1">pelican</summary></details>
<style>@import url(http://beacon.invalid/style.css); * { display: none !important }</style>
<base href="http://beacon.invalid/"><link rel="stylesheet" href="http://beacon.invalid/link.css">
<meta http-equiv="refresh" content="0;url=http://beacon.invalid/refresh"><form action="http://beacon.invalid/form"><button>pelican</button></form>
`,
  'links.md': `# Links of a pelican

[plain](javascript:attacked=1) [capitals](JaVaScRiPt:attacked=1) [entity](&#106;avascript:attacked=1) [tab](java&#9;script:attacked=1)
[line](<java
script:attacked=1>) [control](&#1;javascript:attacked=1) [data](data:text/html,<script>attacked=1</script>) [vb](vbscript:attacked=1)
[blob](blob:http://127.0.0.1/1) [file](file:///etc/passwd) [other host](//beacon.invalid/link) [reference][r] <javascript:attacked=1>

[cursor](cursor://anysphere.cursor-deeplink/mcp/install?name=x&config=eyJjb21tYW5kIjoic2gifQ==) [code](vscode:mcp/install?%7B%22name%22%3A%22x%22%7D)
[studio](lmstudio://add_mcp?name=x&config=eyJjb21tYW5kIjoic2gifQ==) [goose](goose://extension?cmd=npx&arg=x&name=x) <cursor://anysphere.cursor-deeplink/x>

[r]: javascript:attacked=1 "onclick=attacked=1"

[web](https://example.com/pelican) [mail](mailto:pelican@example.com) [beside](html.md)
`,
  'images.md': `# Images of a pelican

![first beacon](http://beacon.invalid/1.png) ![second beacon](//beacon.invalid/2.png) ![third beacon](data:image/svg+xml,<svg onload=attacked=1>)
![fourth beacon][i] [![fifth beacon](https://beacon.invalid/5.png)](https://example.com)

[i]: http://beacon.invalid/4.png

| pelican | ![sixth beacon](http://beacon.invalid/6.png) |
|---|---|
| <img src=http://beacon.invalid/7.png onerror=attacked=1> | \`<script>attacked=1</script>\` |
`,
  'names.md': `# constructor

pelican

## __proto__

## hasOwnProperty

## query

## view

\`\`\`constructor
pelican
\`\`\`

\`\`\`"><script>attacked=1</script>
<script>attacked=1</script> pelican
\`\`\`
`,
  'code.html': '<title>pelican</title><p>A page of a pelican</p><script>attacked = 1</script><img src=x onerror="attacked=1">',
  'page.svg.txt': '<svg xmlns="http://www.w3.org/2000/svg" onload="attacked=1"><script>attacked=1</script></svg> pelican',
  '<img src=x onerror=attacked=1>.md': '# <img src=x onerror=attacked=1>\n\nA pelican with a name.\n',
  'turned\u202egnp.md': '# Turned \u202enacilep\n\nA pelican in the other direction.\n',
};

// writeHostile writes the hostile documents to a folder.
export function writeHostile(folder) {
  for (const [name, text] of Object.entries(hostile)) writeFileSync(path.join(folder, name), text);
}

// writeLarge writes documents that take long to show.
export function writeLarge(folder) {
  writeFileSync(path.join(folder, 'quotes.md'), '# Quotes of a cormorant\n\n' + '>'.repeat(100_000) + ' cormorant\n');
  writeFileSync(path.join(folder, 'brackets.md'), '# Brackets of a cormorant\n\n' + '[![*_`<'.repeat(30_000) + ' cormorant\n');
  writeFileSync(path.join(folder, 'emphasis.md'), '# Emphasis of a cormorant\n\n' + '_a_b\n'.repeat(60_000)); // marked takes quadratic time
  writeFileSync(path.join(folder, 'style.md'), '# Style of a cormorant\n' + ('\n```css\n' + '> > > > > a\n'.repeat(480) + '```\n').repeat(12)); // and so does Prism
  writeFileSync(path.join(folder, 'fences.md'), '# Fences of a cormorant\n\n' + '```\n'.repeat(60_000));
  writeFileSync(path.join(folder, 'table.md'), '# Table of a cormorant\n\n| a | b | c |\n|---|---|---|\n' + '| one | `two` | **three** |\n'.repeat(8_000));
  writeFileSync(path.join(folder, 'headings.md'), '# Headings of a cormorant\n\n' + Array.from({ length: 5_000 }, (_, i) => `## Heading ${i}\n\ntext\n`).join('\n'));
  writeFileSync(path.join(folder, 'line.txt'), 'flamingo ' + 'long line '.repeat(1_000_000) + '\n'); // 10 MB
}
