// Takes out of installed dependencies what never runs here: binaries of other platforms and Nodes, headers, documents,
// sources of bundles. For images; plain JavaScript, because whatever Node the image has runs it.
//
//   node build/trim-dependencies.js PATH_OF_NODE_MODULES

import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** The ABI of the Node that runs the service (22), in the names of native modules. */
const ABI = '127';
const HOST = `${process.platform}_${process.arch}`;
const [directory] = process.argv.slice(2);
if (directory === undefined || !existsSync(directory)) {
  console.error('usage: node build/trim-dependencies.js PATH_OF_NODE_MODULES');
  process.exit(2);
}

const before = bytesOf(directory);
const binaries = join(directory, 'uWebSockets.js', 'dist', 'bin');
for (const name of entriesOf(binaries)) if (name !== `uws_${HOST}_${ABI}.node`) remove(join(binaries, name));
if (!existsSync(join(binaries, `uws_${HOST}_${ABI}.node`)))
  console.error(`there is no uWebSockets.js for ${HOST}, Node ABI ${ABI}: node:http will serve in its place`);
for (const name of entriesOf(directory).filter((entry) => /^node-(bin-)?(linux|darwin)-/.test(entry)))
  for (const part of ['include', 'share', 'CHANGELOG.md', 'README.md']) remove(join(directory, name, part));
for (const part of ['cjs', 'src']) remove(join(directory, 'gpt-tokenizer', part));
for (const path of readdirSync(directory, { recursive: true, encoding: 'utf8' }))
  if (/\.(map|d\.[cm]?ts)$/.test(path)) remove(join(directory, path));
const mb = (bytes) => Math.round(bytes / 1e6);
console.log(`${mb(before)} MB before, ${mb(bytesOf(directory))} MB now`);

function entriesOf(path) {
  return existsSync(path) ? readdirSync(path) : [];
}

function remove(path) {
  rmSync(path, { recursive: true, force: true });
}

function bytesOf(path) {
  let bytes = 0;
  for (const entry of readdirSync(path, { recursive: true, withFileTypes: true }))
    if (entry.isFile()) bytes += statSync(join(entry.parentPath, entry.name)).size;
  return bytes;
}
