// Makes request-scanner.wasm from its AssemblyScript source; with `--check` it only says whether the committed file is that.

import { readFileSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import asc from 'assemblyscript/asc';

const directory = join(dirname(fileURLToPath(import.meta.url)), '..', 'src', 'data-plane', 'dialects', 'request-scan');
const sourcePath = join(directory, 'request-scanner.as.ts');
const wasmPath = join(directory, 'request-scanner.wasm');

/** The WebAssembly module that the source gives today. */
export async function compileScanner(): Promise<Uint8Array> {
  let wasm: Uint8Array | null = null;
  let messages = '';
  const { error } = await asc.main(
    [
      basename(sourcePath),
      '--outFile',
      'scanner.wasm',
      '-O3',
      '--enable',
      'simd',
      '--runtime',
      'stub',
      '--noAssert',
      '--initialMemory',
      '16',
      '--maximumMemory',
      '1024',
    ],
    {
      readFile: (name) => (name === basename(sourcePath) ? readFileSync(sourcePath, 'utf8') : null),
      writeFile: (name, contents) => {
        if (name === 'scanner.wasm' && typeof contents !== 'string') wasm = contents;
      },
      listFiles: () => [],
      stderr: {
        write: (text) => {
          messages += String(text);
        },
      },
    },
  );
  if (error !== null || wasm === null) throw new Error(`request-scanner.as.ts does not compile:\n${messages}`, { cause: error });
  return wasm;
}

async function main(): Promise<void> {
  const wasm = await compileScanner();
  if (!process.argv.includes('--check')) {
    writeFileSync(wasmPath, wasm);
    process.stdout.write(`request-scanner.wasm: ${wasm.byteLength} bytes\n`);
    return;
  }
  if (Buffer.compare(wasm, readFileSync(wasmPath)) === 0) return;
  process.stderr.write('request-scanner.wasm is not what request-scanner.as.ts compiles to: run `node check/build-scanner.ts`\n');
  process.exitCode = 1;
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) await main();
