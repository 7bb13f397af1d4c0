// Measures the request scanner against JSON.parse on bodies of 1 KB to 1 MB: bodies of coding agents, and bodies of an
// attacker.

import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { RequestScanner } from '../../src/generation/request/scan/request-scanner.ts';
import { sharedAssets } from '../../test/support/shared-assets.ts';

const CODE = [
  'import { readFile } from "node:fs/promises";',
  '',
  '// Reads the settings once; a missing file is not an error.',
  'export async function readSettings(path: string): Promise<Settings> {',
  '\tconst text = await readFile(path, "utf8").catch(() => "{}");',
  '\tif (text.trim() === "") return { name: "default", pattern: /\\d+\\s*$/ };',
  '    for (const line of text.split("\\n")) {',
  '        console.log(`reading ${line} of ${path}`);',
  '    }',
  '\treturn JSON.parse(text) as Settings;',
  '}',
  '',
].join('\n');

/** A chat of several messages whose text is code, as an editor sends it. */
function chat(bytes: number, text = CODE): string {
  const messages = [{ role: 'system', content: 'You are a careful programmer. Answer in short sentences.' }];
  const body = () =>
    JSON.stringify({
      model: 'coder-large',
      stream: true,
      stream_options: { include_usage: true },
      messages,
      temperature: 0.2,
      max_tokens: 4096,
    });
  const perMessage = Math.max(200, Math.min(24_000, bytes / 4));
  while (body().length < bytes) {
    const room = Math.max(20, Math.min(perMessage, bytes - body().length - 40));
    messages.push({
      role: messages.length % 2 === 1 ? 'user' : 'assistant',
      content: text.repeat(Math.ceil(room / text.length)).slice(0, Math.ceil(room * 0.9)),
    });
  }
  return body();
}

function repeated(bytes: number, opening: string, part: (index: number) => string, closing: string): string {
  const parts: string[] = [];
  for (let length = 0, index = 0; length < bytes; index++) {
    const text = part(index);
    parts.push(text);
    length += text.length;
  }
  return opening + parts.join('') + closing;
}

const dice = (index: number): number => ((index * 2654435761) >>> 7) % 97;
const MB = 1 << 20;
const TOKENS = ['1,', '"",', '[],', '{},', 'true,', '"ab",', '[1],', '{"a":1},', '-0.5,', '"\\n",', 'null,'];

function bodies(): [string, string][] {
  const list: [string, string][] = [];
  for (const [label, bytes] of [
    ['1 KB', 1024],
    ['16 KB', 16_384],
    ['256 KB', 262_144],
    ['1 MB', MB],
  ] as const)
    list.push([`chat with code ${label}`, chat(bytes)]);
  list.push([
    'chat with prose 256 KB',
    chat(262_144, 'The quick brown fox jumps over the lazy dog and nobody minds. '),
  ]);
  list.push(['chat in Chinese 256 KB', chat(87_000, '请用简短的句子回答下面的问题并给出理由。')]);
  list.push([
    'image as base64 1 MB',
    JSON.stringify({
      model: 'm',
      messages: [
        {
          role: 'user',
          content: [
            {
              type: 'image_url',
              image_url: { url: `data:image/png;base64,${'iVBORw0KGgoAAAANSUhEUgAA'.repeat(MB / 24)}` },
            },
          ],
        },
      ],
    }),
  ]);
  list.push([
    'tool schemas, indented 256 KB',
    JSON.stringify(
      {
        model: 'm',
        tools: Array.from({ length: 500 }, (_, index) => ({
          type: 'function',
          function: {
            name: `tool_${index}`,
            parameters: {
              type: 'object',
              properties: { path: { type: 'string', description: 'A path' } },
              required: ['path'],
            },
          },
        })),
      },
      null,
      2,
    ),
  ]);
  const nest = `${'['.repeat(254)}${']'.repeat(254)},`;
  list.push(['! brackets to depth 256, 1 MB', repeated(MB, '{"a":[', () => nest, '0]}')]);
  list.push(['! top-level keys, 1 MB', repeated(MB, '{', (index) => `"k${dice(index)}":1,`, '"z":1}')]);
  list.push([
    '! top-level keys of control length, 1 MB',
    repeated(MB, '{', (index) => `"abc${10 + (dice(index) % 89)}":${dice(index)},`, '"z":1}'),
  ]);
  list.push(['! escaped keys, 1 MB', repeated(MB, '{', () => '"\\u006d\\u006fde\\u006c_":1,', '"z":1}')]);
  list.push(['! integers, 1 MB', repeated(MB, '{"a":[', (index) => `${dice(index)},`, '0]}')]);
  list.push([
    '! decimals, 1 MB',
    repeated(MB, '{"a":[', (index) => `-${dice(index)}.${dice(index + 3)}e-${dice(index + 5)},`, '0]}'),
  ]);
  list.push(['! one number, 1 MB', `{"a":${'7'.repeat(MB)}}`]);
  list.push([
    '! every token, shuffled, 1 MB',
    repeated(MB, '{"a":[', (index) => TOKENS[dice(index) % TOKENS.length] ?? '', '0]}'),
  ]);
  list.push(['! only \\uXXXX, 1 MB', `{"a":"${'\\u00e9'.repeat(MB / 6)}"}`]);
  const escapes = ['\\t', '\\u0041', 'x', '\\/', 'yz', '\\b', '\\\\'];
  list.push(['! mixed escapes, 1 MB', `{"a":"${repeated(MB, '', (index) => escapes[dice(index) % 7] ?? '', '')}"}`]);
  list.push(['! only backslashes, 1 MB', `{"a":"${'\\\\'.repeat(MB / 2)}"}`]);
  list.push(['! empty strings, 1 MB', repeated(MB, '{"a":[', () => '"",', '0]}')]);
  list.push([
    '! strings of 0 to 96 bytes, 1 MB',
    repeated(MB, '{"a":[', (index) => `"${'s'.repeat(dice(index))}",`, '0]}'),
  ]);
  list.push(['! white space, 1 MB', `{"a":1${' \n'.repeat(MB / 2)}}`]);
  const agents = sharedAssets('agents');
  for (const name of agents === null ? [] : readdirSync(agents)) {
    if (!/claude-code.*turn1-req2|codex.*turn1-req2|opencode.*main|cline/.test(name) || agents === null) continue;
    const recorded: unknown = JSON.parse(readFileSync(join(agents, name), 'utf8'));
    if (typeof recorded === 'object' && recorded !== null && 'body' in recorded)
      list.push([
        `agent ${name.replace('.json', '')}`,
        typeof recorded.body === 'string' ? recorded.body : JSON.stringify(recorded.body),
      ]);
  }
  return list;
}

/** Returns the mean time of one call in the fastest of 15 rounds. */
function measure(run: () => void, budgetMs: number): number {
  const once = process.hrtime.bigint();
  run();
  const calls = Math.max(
    1,
    Math.min(20_000, Math.round((budgetMs * 1e6) / 15 / Number(process.hrtime.bigint() - once + 1n))),
  );
  const rounds: number[] = [];
  for (let round = 0; round < 15; round++) {
    const start = process.hrtime.bigint();
    for (let call = 0; call < calls; call++) run();
    rounds.push(Number(process.hrtime.bigint() - start) / calls / 1000);
  }
  return Math.min(...rounds);
}

const scanner = new RequestScanner();
const only = process.argv[2];
const list = bodies().filter(([label]) => only === undefined || label.includes(only));
const warm = Buffer.from(chat(65_536));
for (let round = 0; round < 500; round++) scanner.scan(warm);

const WIDTHS = [9, 11, 9, 11, 7];

function printLine(label: string, figures: readonly string[]): void {
  const columns = figures.map((figure, index) => figure.padStart(WIDTHS[index] ?? 0));
  process.stdout.write(`${label.padEnd(46)}${columns.join('')}\n`);
}

printLine('body', ['bytes', 'scan µs', 'ns/byte', 'parse µs', 'ratio']);
for (const [label, text] of list) {
  const body = Buffer.from(text);
  const result = scanner.scan(body);
  if (result.fault !== null) throw new Error(`${label}: ${result.fault} at ${result.faultOffset}`);
  if (!isUtf8(body)) throw new Error(label);
  const scanUs = measure(() => scanner.scan(body), 300);
  const parseUs = measure(() => JSON.parse(body.toString()), 300);
  const nsPerByte = (scanUs * 1000) / body.length;
  const ratio = parseUs / scanUs;
  printLine(label, [
    String(body.length),
    scanUs.toFixed(2),
    nsPerByte.toFixed(3),
    parseUs.toFixed(1),
    ratio.toFixed(1),
  ]);
}
