// Runs the test files of a batch (batches.ts) in this process, one after the other, and records the CPU time of each.

import { registerHooks } from 'node:module';
import { relative } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { keepDeclarations } from './declarations.ts';
import { cpuSeconds, noteCpuTime } from './note-cpu-time.ts';

const DECLARATIONS = new URL('declarations.ts', import.meta.url).href;

/** Loads all files first; the hooks and tests of a file run when those of the files before it are done. */
export async function runBatch(files: readonly string[]): Promise<void> {
  registerHooks({
    resolve: (specifier, context, nextResolve) =>
      specifier === 'node:test' && context.parentURL !== DECLARATIONS
        ? { url: DECLARATIONS, format: 'module', shortCircuit: true }
        : nextResolve(specifier, context),
  });
  const suites: { readonly file: string; readonly declare: () => void }[] = [];
  for (const file of files) suites.push({ file, declare: await loadOrFail(file) });
  for (const { file, declare } of suites)
    describe(relative(process.cwd(), file), () => {
      let begun = cpuSeconds();
      before(() => {
        begun = cpuSeconds();
      });
      declare();
      after(() => noteCpuTime(file, begun));
    });
}

async function loadOrFail(file: string): Promise<() => void> {
  try {
    return await keepDeclarations(() => import(pathToFileURL(file).href));
  } catch (fault) {
    return () =>
      void test('is loaded', () => {
        throw fault;
      });
  }
}
