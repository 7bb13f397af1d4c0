// Loads every recorded exchange of the text formats from the shared assets beside the repository, with the usage that
// plain JSON parsing finds in it.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import {
  type ExpectedUsage,
  expectUsage,
  parseDocument,
  type RecordedFormat,
  readDocuments,
} from './recorded-usage.ts';
import { sharedAssets } from './shared-assets.ts';

export type { ExpectedUsage, RecordedFormat };

export interface RecordedExchange {
  readonly name: string;
  readonly format: RecordedFormat;
  readonly method: string;
  readonly path: string;
  /** null: only the response was recorded. */
  readonly requestBody: Buffer | null;
  readonly responseBody: Buffer;
  readonly contentType: string;
  readonly stream: boolean;
  readonly status: number;
  /** null: the recording holds no usage object. */
  readonly expectedUsage: ExpectedUsage | null;
}

/** Empty when the recordings are not there. */
export function loadRecordedChatExchanges(): RecordedExchange[] {
  return loadRecordedExchanges('chat');
}

/** Empty when the recordings are not there. */
export function loadRecordedExchanges(format: RecordedFormat): RecordedExchange[] {
  const root = sharedAssets();
  if (root === null) return [];
  const folders = readdirSync(root).filter((name) => statSync(join(root, name)).isDirectory());
  const indexed = folders.flatMap((folder) => loadIndexed(join(root, folder), folder, format));
  return [...indexed, ...loadFixtures(join(root, 'vercel-ai'), format)];
}

interface IndexLine {
  readonly id: string;
  readonly api: string;
  readonly method: string;
  readonly url_path: string;
  readonly status: number;
  readonly stream: boolean;
  readonly req: string;
  readonly resp: string;
  readonly resp_headers: Readonly<Record<string, string>>;
}

/** A folder of cassettes: `index.jsonl` names the files of each exchange. */
function loadIndexed(folder: string, folderName: string, format: RecordedFormat): RecordedExchange[] {
  const files = readdirSync(folder);
  if (!files.includes('index.jsonl')) return [];
  const lines = readFileSync(join(folder, 'index.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  const exchanges = lines.map((line) => JSON.parse(line) as IndexLine).filter((line) => line.api === format);
  return exchanges.map((line) => {
    const responseBody = readFileSync(join(folder, line.resp));
    return {
      name: `${folderName}/${line.id}`,
      format,
      method: line.method,
      path: line.url_path,
      requestBody: files.includes(line.req) ? readFileSync(join(folder, line.req)) : null,
      responseBody,
      contentType: line.resp_headers['content-type'] ?? (line.stream ? 'text/event-stream' : 'application/json'),
      stream: line.stream,
      status: line.status,
      expectedUsage: expectUsage(format, responseBody, line.stream),
    };
  });
}

const PATHS: Readonly<Record<RecordedFormat, string>> = {
  chat: '/v1/chat/completions',
  responses: '/v1/responses',
  messages: '/v1/messages',
  count_tokens: '/v1/messages/count_tokens',
  responses_sub: '/v1/responses',
};

/**
 * Fixtures without an index: whole answers, streams without their framing (one event's data a line), framed streams.
 */
function loadFixtures(folder: string, format: RecordedFormat): RecordedExchange[] {
  return listFiles(folder).flatMap((path) => {
    if (!/\.(json|chunks\.txt|sse)$/.test(path)) return [];
    const stream = !path.endsWith('.json');
    const file = readFileSync(path);
    const bodies = path.endsWith('.chunks.txt') ? frameStreams(file, format) : [file];
    const ofFormat = bodies.filter((body) => isOfFormat(body, stream, format));
    return ofFormat.map((responseBody, index) => ({
      name: `vercel-ai/${relative(folder, path)}${ofFormat.length === 1 ? '' : `#${index + 1}`}`,
      format,
      method: 'POST',
      path: PATHS[format],
      requestBody: null,
      responseBody,
      contentType: stream ? 'text/event-stream; charset=utf-8' : 'application/json',
      stream,
      status: 200,
      expectedUsage: expectUsage(format, responseBody, stream),
    }));
  });
}

function listFiles(folder: string): string[] {
  const names = readdirSync(folder, { withFileTypes: true });
  return names.flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? listFiles(path) : [path];
  });
}

const LAST_EVENTS: readonly (string | undefined)[] = [
  'response.completed',
  'response.incomplete',
  'response.failed',
  'message_stop',
];

/** Some files hold the streams of a whole conversation, one after another. */
function frameStreams(lines: Buffer, format: RecordedFormat): Buffer[] {
  const events = lines
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  if (format === 'chat') {
    if (events.at(-1) !== '[DONE]') events.push('[DONE]');
    return [Buffer.from(events.map((event) => `data: ${event}\n\n`).join(''))];
  }
  const streams: string[] = [];
  let stream = '';
  for (const event of events) {
    const type = parseDocument(event)?.type;
    stream += `event: ${type}\ndata: ${event}\n\n`;
    if (!LAST_EVENTS.includes(type)) continue;
    streams.push(stream);
    stream = '';
  }
  if (stream !== '') streams.push(stream);
  return streams.map((text) => Buffer.from(text));
}

function isOfFormat(body: Buffer, stream: boolean, format: RecordedFormat): boolean {
  const documents = readDocuments(body, stream);
  if (format === 'chat') {
    const part = stream ? 'delta' : 'message';
    return documents.some((document) => document.choices?.some((choice) => typeof choice[part] === 'object') ?? false);
  }
  const [first] = documents;
  if (format === 'messages') return first?.type === (stream ? 'message_start' : 'message');
  return format === 'responses' && (stream ? first?.type === 'response.created' : first?.object === 'response');
}
