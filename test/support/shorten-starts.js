// Preloaded into every process of a test run (NODE_OPTIONS) to make its start short; there are hundreds of them.
//
// A source file's types are stripped once for the run, not once for each process. The text is exactly the one that Node
// would make. It is stored by the file's path, time and size, in a directory that lives as long as the run.
//
// A file that is imported by a relative path exists. Node would check that, resolve links, and look for the
// package.json that gives its format, for each of a thousand imports.
//
// `import ... from 'node:http'` reads everything that the module exports. Three of its names load all of Node's fetch
// and WebSocket, which no file here takes from that module: 30 ms of CPU.

import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { registerHooks, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

for (const name of ['WebSocket', 'CloseEvent', 'MessageEvent'])
  Object.defineProperty(process.getBuiltinModule('node:http'), name, { value: undefined });

const directory = process.env.TOLLGATE_TEST_STRIPPED;

if (directory !== undefined) {
  registerHooks({
    resolve(specifier, context, nextResolve) {
      const { parentURL, conditions } = context;
      if (specifier.startsWith('.') && parentURL?.startsWith('file:') && conditions.includes('import')) {
        if (specifier.endsWith('.ts'))
          return { url: new URL(specifier, parentURL).href, format: 'module', shortCircuit: true };
        if (specifier.endsWith('.js')) return { url: new URL(specifier, parentURL).href, shortCircuit: true };
      }
      return nextResolve(specifier, context);
    },
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
    // No process has stored this file yet.
  }
  const stripped = stripTypeScriptTypes(readFileSync(file, 'utf8'));
  const unfinished = `${kept}.${process.pid}`;
  writeFileSync(unfinished, stripped);
  renameSync(unfinished, kept);
  return stripped;
}
