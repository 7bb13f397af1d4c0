// Groups test files that share a process. Starting a process and loading the product in it costs as much as what most
// files then do, so `npm test` runs several files of a suite in one process, one after the other, each as a suite of
// its own name.
//
// A file that reads or changes something of its whole process says so in a comment that begins with "A process of its
// own:", and gets its own process. So does each file with the embedded ClickHouse, and each file at length.

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** How many files of a suite share a process; the files of every other suite have one each. */
const FILES_OF_BATCH: Readonly<Record<string, number>> = { contract: 8, integration: 8, unit: 16 };
/** The ClickHouse engine can open only one directory in the life of a process. */
const OWN_PROCESS = /^\/\/ A process of its own: |\bopenTestClickHouse\(|\breports: true\b/m;
const RUN_BATCH = new URL('run-batch.ts', import.meta.url).href;

/**
 * Returns the files to run instead of `files`, in the same order. Files that can share a process are replaced by a file
 * that imports them; it is written below `directory`, in the folder of their suite.
 */
export function batchesOf(
  files: readonly string[],
  { directory, suiteOf }: { readonly directory: string; readonly suiteOf: (file: string) => string },
): string[] {
  const runs: string[] = [];
  let batch: string[] = [];
  const close = (): void => {
    const [first] = batch;
    if (first !== undefined)
      runs.push(batch.length === 1 ? first : writeBatch(join(directory, 'test', suiteOf(first)), runs.length, batch));
    batch = [];
  };
  for (const file of files) {
    const filesMax = FILES_OF_BATCH[suiteOf(file)] ?? 1;
    if (filesMax === 1 || OWN_PROCESS.test(readFileSync(file, 'utf8'))) {
      runs.push(file);
      continue;
    }
    if (batch[0] !== undefined && suiteOf(batch[0]) !== suiteOf(file)) close();
    batch.push(file);
    if (batch.length === filesMax) close();
  }
  close();
  return runs;
}

function writeBatch(directory: string, number: number, files: readonly string[]): string {
  mkdirSync(directory, { recursive: true });
  const path = join(directory, `batch-${number}.test.mjs`);
  writeFileSync(
    path,
    `import { runBatch } from ${JSON.stringify(RUN_BATCH)};\nawait runBatch(${JSON.stringify(files)});\n`,
  );
  return path;
}
