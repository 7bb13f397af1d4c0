// `npm run prepare`: bundles the console (src/console) into src/console/built, which gateways serve from memory. Plain
// JavaScript, because npm runs it with the host's Node. It uses no network.

import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

const FOLDER = fileURLToPath(new URL('../src/console', import.meta.url));
const BUILT = join(FOLDER, 'built');
const ICON = [
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E",
  "%3Crect width='32' height='32' rx='7' fill='%233650c4'/%3E",
  "%3Cpath d='M6 12h20M10 12v12M22 12v12' stroke='white' stroke-width='3'/%3E%3C/svg%3E",
].join('');

/** The page. It loads everything from its own gateway, and contains no inline script or style. */
const page = (script, style) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Tollgate</title>
<link rel="icon" href="${ICON}">
<link rel="stylesheet" href="/console/${style}">
<script type="module" src="/console/${script}"></script>
</head>
<body>
<div id="console"></div>
<noscript>The console needs JavaScript. All that it shows is also a route of the API and a command of tollgate.</noscript>
</body>
</html>
`;

/** Returns null if only production dependencies are installed. */
async function loadBundler() {
  try {
    return await import('esbuild');
  } catch {
    return null;
  }
}

async function build(bundler) {
  rmSync(BUILT, { recursive: true, force: true });
  await bundler.build({
    entryPoints: { app: join(FOLDER, 'main.tsx') },
    entryNames: '[name]-[hash]',
    outdir: BUILT,
    bundle: true,
    minify: true,
    format: 'esm',
    // The first browsers that support light-dark() in a stylesheet.
    target: ['chrome123', 'firefox120', 'safari17.5'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    legalComments: 'none',
    logLevel: 'warning',
  });
  const names = readdirSync(BUILT);
  const [script, style] = ['.js', '.css'].map((end) => names.find((name) => name.endsWith(end)));
  const html = 'index.html';
  writeFileSync(join(BUILT, html), page(script, style));
  writeFileSync(join(BUILT, 'manifest.json'), `${JSON.stringify({ html, script, style })}\n`);
  for (const name of [html, script, style]) compress(name);
}

function compress(name) {
  const bytes = readFileSync(join(BUILT, name));
  const brotli = brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 11 } });
  writeFileSync(join(BUILT, `${name}.br`), brotli);
  const sizes = [bytes, gzipSync(bytes), brotli].map(({ length }) => (length / 1000).toFixed(1));
  console.log(`${name}: ${sizes[0]} kB, ${sizes[1]} with gzip, ${sizes[2]} with brotli`);
}

const bundler = await loadBundler();
if (bundler === null) console.log('The console is not built: esbuild, a development dependency, is not installed.');
else await build(bundler);
