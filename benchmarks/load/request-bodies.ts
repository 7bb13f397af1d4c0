// Realistic chat requests of the sizes measured, always the same bytes for the same name: prose, code with its escapes,
// and text beyond ASCII.

const SYSTEM = 'You are a careful reviewer of TypeScript. Answer in short sentences and show code in fenced blocks.';
const PROSE =
  'Please look at the function below: it is called for each line of a large file, and the second call ' +
  'sometimes returns "none" although the list isn\'t empty. Früher lief das ohne Fehler – seit gestern ' +
  'nicht mehr. ';
const CODE = `\`\`\`ts
export function firstWord(lines: readonly string[], seen: Map<string, number>): string {
\tfor (const line of lines) {
\t\tconst match = /^\\s*"?(\\w+)"?\\s*[:=]\\s*(.*)$/u.exec(line);
\t\tif (match?.[1] === undefined) continue;
\t\tseen.set(match[1], (seen.get(match[1]) ?? 0) + 1);
\t}
\treturn seen.size === 0 ? "none" : [...seen.keys()].join(",\\n");
}
\`\`\`
`;

const SIZES: Readonly<Record<string, number>> = { '1k': 1024, '16k': 16 * 1024, '256k': 256 * 1024, '1m': 1024 * 1024 };

function turns(bytes: number): object[] {
  const messages: object[] = [{ role: 'system', content: SYSTEM }];
  const turn = PROSE + CODE;
  let left = bytes;
  while (left > 0) {
    // Turns of up to 4 KB, as in an agent's history.
    const size = Math.min(left, 4096);
    messages.push({
      role: messages.length % 2 === 1 ? 'user' : 'assistant',
      content: turn.repeat(Math.ceil(size / turn.length)).slice(0, size),
    });
    left -= size;
  }
  return messages;
}

function chatRequest(model: string, bytes: number, stream: boolean): Buffer {
  const options = stream ? { stream: true, stream_options: { include_usage: true } } : {};
  let contentBytes = bytes;
  for (;;) {
    const body = Buffer.from(
      JSON.stringify({ model, messages: turns(contentBytes), temperature: 0.2, max_tokens: 256, ...options }),
    );
    const over = body.byteLength - bytes;
    if (over <= 0 || contentBytes <= 1) return body;
    contentBytes = Math.max(1, contentBytes - Math.ceil(over * 0.8));
  }
}

/** Legal bodies that are as hard as possible for a scanner; each fills one megabyte. No dialect knows the field `v`. */
const ADVERSARIAL: Readonly<Record<string, (bytes: number) => string>> = {
  'escapes-1m': (bytes) => `"${'\\\\\\"\\u00e9\\n'.repeat(Math.floor(bytes / 12))}"`,
  'short-strings-1m': (bytes) => `[${'"",'.repeat(Math.floor(bytes / 3))}""]`,
  'small-numbers-1m': (bytes) => `[${'1,'.repeat(Math.floor(bytes / 2))}1]`,
  'nested-arrays-1m': (bytes) => `[${`${'['.repeat(250)}${']'.repeat(250)},`.repeat(Math.floor(bytes / 501))}0]`,
  'empty-objects-1m': (bytes) => `[${'{},'.repeat(Math.floor(bytes / 3))}{}]`,
  'white-space-1m': (bytes) => `${' '.repeat(bytes)}0`,
  'non-ascii-1m': (bytes) => `"${'漢é😀'.repeat(Math.floor(bytes / 9))}"`,
  'keys-1m': (bytes) => `{${'"a":0,'.repeat(Math.floor(bytes / 6))}"a":0}`,
};

function adversarialRequest(model: string, value: string): Buffer {
  const head = JSON.stringify({ model, messages: [{ role: 'user', content: 'hello' }], max_tokens: 16 });
  return Buffer.from(`${head.slice(0, -1)},"v":${value}}`);
}

/** A body with one unbroken run of letters in the message, where the bound of the input may have to count tokens. */
function unbrokenRunRequest(model: string, bytes: number): Buffer {
  return Buffer.from(
    JSON.stringify({ model, messages: [{ role: 'user', content: 'a'.repeat(bytes) }], max_tokens: 16 }),
  );
}

const ADVERSARIAL_BYTES = 1_000_000;

export const MEGABYTE_BODIES: readonly string[] = ['1m', ...Object.keys(ADVERSARIAL), 'unbroken-run-1m'];

/** The request body of that name: `1k`, `16k`, `256k`, `1m`, `stream`, or one of MEGABYTE_BODIES. */
export function requestBody(name: string, model: string): Buffer {
  if (name === 'stream') return chatRequest(model, 1024, true);
  if (name === 'unbroken-run-1m') return unbrokenRunRequest(model, ADVERSARIAL_BYTES);
  const adversarial = ADVERSARIAL[name];
  if (adversarial !== undefined) return adversarialRequest(model, adversarial(ADVERSARIAL_BYTES));
  const bytes = SIZES[name];
  if (bytes === undefined) throw new Error(`no request body is called ${name}`);
  return chatRequest(model, bytes, false);
}
