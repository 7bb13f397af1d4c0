// Preloaded into every process of a test run (NODE_OPTIONS): types are stripped from a source file once for the run and
// not once for each of its hundreds of processes, where that is most of a start.
//
// The text is the very one that Node would make. It is kept under the file's path, time and size, in a directory that
// lives as long as the run.

import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const directory = process.env.TOLLGATE_TEST_STRIPPED;

if (directory !== undefined) {
  registerHooks({
    load(url, context, nextLoad) {
      if (!url.startsWith('file:') || !url.endsWith('.ts')) return nextLoad(url, context);
      return { format: 'module', source: readStripped(fileURLToPath(url), directory), shortCircuit: true };
    },
  });
}

function readStripped(file, directory) {
  const { mtimeMs, size } = statSync(file);
  const kept = join(directory, encodeURIComponent(`${file} ${mtimeMs} ${size}`));
  try {
    return readFileSync(kept, 'utf8');
  } catch {
    // Nobody needed it before.
  }
  const stripped = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  const unfinished = `${kept}.${process.pid}`;
  writeFileSync(unfinished, stripped);
  renameSync(unfinished, kept);
  return stripped;
}
