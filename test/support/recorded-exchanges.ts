// Every recorded Chat Completions exchange that lies beside the repository, with the usage that plain JSON parsing finds in it.
// This reading shares no code with the gateway's, so that the two can be compared.

import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join, relative } from 'node:path';
import { sharedAssets } from './shared-assets.ts';

export interface ExpectedUsage {
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly cachedTokens: number | null;
  readonly reasoningTokens: number | null;
}

export interface RecordedExchange {
  readonly name: string;
  /** null where only the response was recorded. */
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
  const root = sharedAssets();
  if (root === null) return [];
  const folders = readdirSync(root).filter((name) => statSync(join(root, name)).isDirectory());
  const indexed = folders.flatMap((folder) => loadIndexed(join(root, folder), folder));
  return [...indexed, ...loadFixtures(join(root, 'vercel-ai'))];
}

interface IndexLine {
  readonly id: string;
  readonly api: string;
  readonly status: number;
  readonly stream: boolean;
  readonly req: string;
  readonly resp: string;
  readonly resp_headers: Readonly<Record<string, string>>;
}

/** A folder of cassettes: `index.jsonl` names the files of each exchange. */
function loadIndexed(folder: string, folderName: string): RecordedExchange[] {
  if (!readdirSync(folder).includes('index.jsonl')) return [];
  const lines = readFileSync(join(folder, 'index.jsonl'), 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  const exchanges = lines.map((line) => JSON.parse(line) as IndexLine).filter((line) => line.api === 'chat');
  return exchanges.map((line) => {
    const responseBody = readFileSync(join(folder, line.resp));
    return {
      name: `${folderName}/${line.id}`,
      requestBody: readFileSync(join(folder, line.req)),
      responseBody,
      contentType: line.resp_headers['content-type'] ?? (line.stream ? 'text/event-stream' : 'application/json'),
      stream: line.stream,
      status: line.status,
      expectedUsage: readUsage(responseBody, line.stream),
    };
  });
}

/** Fixtures without an index: whole answers, streams without their framing (one event's data a line), framed streams. */
function loadFixtures(folder: string): RecordedExchange[] {
  return listFiles(folder).flatMap((path) => {
    const stream = !path.endsWith('.json');
    const file = readFileSync(path);
    const responseBody = path.endsWith('.chunks.txt') ? frame(file) : file;
    if (!/\.(json|chunks\.txt|sse)$/.test(path) || !isChat(responseBody, stream)) return [];
    return [
      {
        name: `vercel-ai/${relative(folder, path)}`,
        requestBody: null,
        responseBody,
        contentType: stream ? 'text/event-stream; charset=utf-8' : 'application/json',
        stream,
        status: 200,
        expectedUsage: readUsage(responseBody, stream),
      },
    ];
  });
}

function listFiles(folder: string): string[] {
  const names = readdirSync(folder, { withFileTypes: true });
  return names.flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? listFiles(path) : [path];
  });
}

function frame(lines: Buffer): Buffer {
  const events = lines
    .toString('utf8')
    .split(/\r?\n/)
    .filter((line) => line.trim() !== '');
  if (events.at(-1) !== '[DONE]') events.push('[DONE]');
  return Buffer.from(events.map((event) => `data: ${event}\n\n`).join(''));
}

interface Document {
  readonly choices?: readonly { readonly message?: unknown; readonly delta?: unknown }[];
  readonly usage?: UsageObject | null;
}

interface UsageObject {
  readonly prompt_tokens?: number;
  readonly completion_tokens?: number;
  readonly prompt_tokens_details?: { readonly cached_tokens?: number } | null;
  readonly completion_tokens_details?: { readonly reasoning_tokens?: number } | null;
}

function isChat(body: Buffer, stream: boolean): boolean {
  const part = stream ? 'delta' : 'message';
  return readDocuments(body, stream).some((document) => document.choices?.some((choice) => typeof choice[part] === 'object') ?? false);
}

/** The documents of a body: itself, or the data of its events. */
function readDocuments(body: Buffer, stream: boolean): Document[] {
  const texts = stream ? readEvents(body) : [body.toString('utf8')];
  return texts.map((text): unknown => parse(text)).filter((value): value is Document => typeof value === 'object' && value !== null);
}

function readEvents(body: Buffer): string[] {
  const lines = body.toString('utf8').split(/\r\n|\n|\r/);
  return lines.filter((line) => line.startsWith('data:')).map((line) => line.slice('data:'.length).trim());
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null; // `[DONE]`, and the rare recording that is not JSON.
  }
}

/** The last usage object that is not null: providers that repeat it do so cumulatively. */
function readUsage(body: Buffer, stream: boolean): ExpectedUsage | null {
  const usage = readDocuments(body, stream).findLast((document) => typeof document.usage === 'object' && document.usage !== null)?.usage;
  if (usage === undefined || usage === null) return null;
  return {
    inputTokens: usage.prompt_tokens ?? null,
    outputTokens: usage.completion_tokens ?? null,
    cachedTokens: usage.prompt_tokens_details?.cached_tokens ?? null,
    reasoningTokens: usage.completion_tokens_details?.reasoning_tokens ?? null,
  };
}
