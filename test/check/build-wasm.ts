// Compiles each .wasm file from its AssemblyScript source. With `--check` it only compares the result with the
// committed file.

import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import asc from 'assemblyscript/asc';

/** The sources without their extension, and the memory of each, in pages of 64 KB. */
const MODULES = [{ path: 'generation/request/scan/request-scanner', initialPages: 16, maximumPages: 1024 }] as const;
type WasmModule = (typeof MODULES)[number];

const root = join(fileURLToPath(new URL('.', import.meta.url)), '..', '..', 'src');

/** Compiles the present source; throws if it does not compile. */
async function compile({ path, initialPages, maximumPages }: WasmModule): Promise<Uint8Array> {
  const source = `${basename(path)}.as.ts`;
  let wasm: Uint8Array | null = null;
  let messages = '';
  const { error } = await asc.main(
    [
      source,
      '--outFile',
      'module.wasm',
      '-O3',
      '--enable',
      'simd',
      '--runtime',
      'stub',
      '--noAssert',
      '--initialMemory',
      `${initialPages}`,
      '--maximumMemory',
      `${maximumPages}`,
    ],
    {
      readFile: (name) => (name === source ? readFileSync(join(root, `${path}.as.ts`), 'utf8') : null),
      writeFile: (name, contents) => {
        if (name === 'module.wasm' && typeof contents !== 'string') wasm = contents;
      },
      listFiles: () => [],
      stderr: {
        write: (text) => {
          messages += String(text);
        },
      },
    },
  );
  if (error !== null || wasm === null) throw new Error(`${source} does not compile:\n${messages}`, { cause: error });
  return wasm;
}

async function main(): Promise<void> {
  for (const module of MODULES) {
    const wasm = await compile(module);
    const wasmPath = join(root, `${module.path}.wasm`);
    if (!process.argv.includes('--check')) {
      writeFileSync(wasmPath, wasm);
      process.stdout.write(`${basename(wasmPath)}: ${wasm.byteLength} bytes\n`);
    } else if (Buffer.compare(wasm, readFileSync(wasmPath)) !== 0) {
      process.stderr.write(
        `${basename(wasmPath)} is not what ${basename(module.path)}.as.ts compiles to: run \`node ` +
          `test/check/build-wasm.ts\`\n`,
      );
      process.exitCode = 1;
    }
  }
}

await main();
