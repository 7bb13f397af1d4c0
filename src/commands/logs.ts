// `tollgate logs`: shows the access log of this machine, and new lines as they come.

import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { readConfig } from '../config.ts';
import { StartFault } from '../installation/start-fault.ts';
import { ACCESS_LOG_FILES, type AccessLogEntry, accessLogFile } from '../records/access-log-line.ts';
import { type Command, type CommandContext, expectPositionals, parseArguments, UsageFault } from './command/command.ts';

export const logsCommand: Command = {
  usage: ['tollgate logs [-f] [--lines COUNT] [--failed] [--model MODEL] [--json]'],
  summary:
    'Shows the last requests that ended on this machine (ACCESS_LOG=on), and with -f new ones as they end; ' +
    '--json prints them as they are in the log.',
  run,
};

const LINES = 20;
const POLL_MS = 250;
const CHUNK_BYTES = 1 << 16;
/**
 * A client may write any text as its model. The text may neither move a terminal's cursor nor look like another line.
 */
const CONTROL = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/**
 * The position to continue reading from. The file is identified by its number in the file system, because the next file
 * gets the same name.
 */
interface Place {
  /** null: there is no file yet. */
  readonly fileId: bigint | null;
  readonly bytes: number;
}

interface Shown {
  readonly failed: boolean;
  readonly model: string | null;
  readonly json: boolean;
}

async function run(args: readonly string[], { environment, print }: CommandContext): Promise<number> {
  const { values, positionals } = parseArguments(
    args.map((arg) => (arg === '-f' ? '--follow' : arg)),
    {
      follow: { type: 'boolean', default: false },
      lines: { type: 'string', default: String(LINES) },
      failed: { type: 'boolean', default: false },
      model: { type: 'string' },
      json: { type: 'boolean', default: false },
    },
  );
  expectPositionals(positionals, []);
  if (!/^\d{1,6}$/.test(values.lines)) throw new UsageFault('--lines needs a number of lines');
  const { dataDirectory } = readConfig(environment);
  const shown = { failed: values.failed, model: values.model ?? null, json: values.json };
  const present = await endOf(accessLogFile(dataDirectory, 0));
  if (present.fileId === null && !values.follow)
    throw new StartFault(
      `no request is in the access log of ${dataDirectory} yet: with ACCESS_LOG=on jobs writes a line for each ` +
        'ended request',
    );
  const { lines, place } = await readLast(dataDirectory, Number(values.lines), shown);
  for (const line of lines) print(line);
  if (values.follow) await follow(dataDirectory, place, (line) => showLine(line, shown, print));
  return 0;
}

/** The last lines to show, oldest first, and how far the present file was read. */
async function readLast(directory: string, count: number, shown: Shown): Promise<{ lines: string[]; place: Place }> {
  const newest = await readEnd(accessLogFile(directory, 0), count, shown);
  let { lines } = newest;
  // Files are long, so an older file is read only for lines that the newer ones lack.
  for (let age = 1; age < ACCESS_LOG_FILES && lines.length < count; age++)
    lines = [...(await readEnd(accessLogFile(directory, age), count - lines.length, shown)).lines, ...lines];
  return { lines, place: newest.place };
}

/** Returns nothing for a file that does not exist. */
async function readEnd(path: string, count: number, shown: Shown): Promise<{ lines: string[]; place: Place }> {
  const lines: string[] = [];
  const place = await endOf(path);
  if (place.bytes === 0) return { lines, place };
  const input = createReadStream(path, { end: place.bytes - 1 });
  try {
    for await (const line of createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY })) {
      showLine(line, shown, (text) => void lines.push(text));
      if (lines.length > count) lines.shift();
    }
  } catch (error) {
    ifAbsent(error);
  }
  return { lines, place };
}

async function endOf(path: string): Promise<Place> {
  const found = await stat(path, { bigint: true }).catch(ifAbsent);
  return found === null ? { fileId: null, bytes: 0 } : { fileId: found.ino, bytes: Number(found.size) };
}

/**
 * Never resolves. A file that jobs renames is read to its end, and the next file from its beginning. If somebody
 * removed or emptied the file, it was not renamed: the older file has been shown, or was not asked for.
 */
async function follow(directory: string, from: Place, show: (line: string) => void): Promise<never> {
  const present = accessLogFile(directory, 0);
  const chunk = Buffer.alloc(CHUNK_BYTES);
  let rest = '';
  /** Shows the new lines of a file, and returns how far it has been read. */
  const readOn = async (path: string, offset: number): Promise<number> => {
    for (let at = offset; ; ) {
      const text = await readAt(path, at, chunk);
      if (text === '') return at;
      at += text.length;
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) show(Buffer.from(line, 'latin1').toString('utf8'));
    }
  };
  for (let { fileId, bytes } = from; ; ) {
    const now = await endOf(present);
    if (now.fileId !== null && (now.fileId !== fileId || now.bytes < bytes)) {
      const aside = accessLogFile(directory, 1);
      if (fileId !== null && (await endOf(aside)).fileId === fileId) await readOn(aside, bytes);
      ({ fileId } = now);
      bytes = 0;
      rest = '';
    }
    bytes = await readOn(present, bytes);
    await sleep(POLL_MS);
  }
}

/**
 * Returns the bytes as characters of Latin-1, because a read may end inside a UTF-8 character. Returns nothing for a
 * file that does not exist, as between two files.
 */
async function readAt(path: string, offset: number, chunk: Buffer): Promise<string> {
  const file = await open(path).catch(ifAbsent);
  if (file === null) return '';
  try {
    const { bytesRead } = await file.read(chunk, 0, chunk.length, offset);
    return chunk.toString('latin1', 0, bytesRead);
  } finally {
    await file.close();
  }
}

/** Files may be removed or renamed at any moment. */
function ifAbsent(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
  return null;
}

function showLine(line: string, { failed, model, json }: Shown, print: (text: string) => void): void {
  let entry: AccessLogEntry | null;
  try {
    entry = JSON.parse(line) as AccessLogEntry | null;
  } catch {
    // The last line may be incomplete after a power cut.
    return;
  }
  if (typeof entry !== 'object' || entry === null) return;
  if (failed && entry.status !== null && entry.status < 400) return;
  if (model !== null && entry.model !== model && entry.requested_model !== model) return;
  print(json ? line : renderEntry(entry));
}

function renderEntry(entry: AccessLogEntry): string {
  const { status, error, provider, attempts, tier, cost, ttft_ms: ttftMs } = entry;
  const tokens = `${entry.tokens_prompt ?? '?'}+${entry.tokens_completion ?? '?'} tokens`;
  return [
    entry.time,
    `${status ?? 'left'}${error === null ? '' : ` ${error}`}`,
    entry.api,
    entry.requested_model === entry.model ? entry.model : `${entry.requested_model} > ${entry.model}`,
    ...(provider === null ? [] : [attempts > 1 ? `${provider} (${attempts} calls)` : provider]),
    ...(tier === null ? [] : [`tier ${tier}`]),
    `${entry.latency_ms} ms${ttftMs === null ? '' : `, first byte ${ttftMs} ms`}`,
    ...(provider === null ? [] : [tokens]),
    ...(cost === null ? [] : [`${cost} USD`]),
    entry.id,
  ]
    .join('  ')
    .replaceAll(CONTROL, '\u{fffd}');
}
