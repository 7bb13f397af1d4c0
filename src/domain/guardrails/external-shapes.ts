// The three ways in which external detectors are asked, and what their answers say: our own webhook, Presidio's
// analyzer, and OpenAI's moderation. Answers count positions in characters; this file converts them to bytes.

import type { External } from './policy.ts';

/** What an external detector found in one text. Byte offsets in the text's UTF-8. */
export interface ExternalHit {
  readonly entity: string;
  readonly start: number;
  readonly end: number;
  readonly score: number;
}

/** How many texts one request may have. */
const TEXTS_PER_REQUEST: Readonly<Record<External['shape'], number>> = {
  webhook: 256,
  presidio: 1,
  moderation: 32,
};
/** The most bytes of text in one request, unless it has a single text: the event loop writes them as JSON in one go. */
const REQUEST_BYTES_MAX = 131_072;
const ENTITY_LENGTH_MAX = 64;
/**
 * The longest answer that is read; the event loop parses it in at most six milliseconds. Object keys that all differ,
 * as a moderation's categories may, take twice as long to parse as anything else.
 */
export const ANSWER_BYTES_MAX: Readonly<Record<External['shape'], number>> = {
  webhook: 262_144,
  presidio: 262_144,
  moderation: 131_072,
};
/** The most findings in one answer. */
const HITS_MAX = 10_000;
/** The most categories in one result of a moderation; OpenAI's have 13. */
const CATEGORIES_MAX = 256;

/** Divides the texts into requests, in order. */
export function requestsFor({ shape }: External, texts: readonly string[]): readonly (readonly string[])[] {
  const requests: string[][] = [];
  let bytes = 0;
  for (const text of texts) {
    const last = requests.at(-1);
    bytes += Buffer.byteLength(text);
    if (last !== undefined && last.length < TEXTS_PER_REQUEST[shape] && bytes <= REQUEST_BYTES_MAX) {
      last.push(text);
    } else {
      requests.push([text]);
      bytes = Buffer.byteLength(text);
    }
  }
  return requests;
}

export function externalRequest({ shape, model, language }: External, texts: readonly string[]): object {
  switch (shape) {
    case 'webhook':
      return { texts };
    case 'presidio':
      return { text: texts[0] ?? '', language };
    case 'moderation':
      return { input: texts, ...(model === null ? {} : { model }) };
  }
}

/** The hits in each of the texts. Throws if the answer has another form. */
export function externalHits({ shape }: External, texts: readonly string[], answer: unknown): ExternalHit[][] {
  switch (shape) {
    case 'webhook':
      return webhookHits(texts, answer);
    case 'presidio':
      return [presidioHits(texts[0] ?? '', answer)];
    case 'moderation':
      return moderationHits(texts, answer);
  }
}

function webhookHits(texts: readonly string[], answer: unknown): ExternalHit[][] {
  const hits: ExternalHit[][] = texts.map(() => []);
  const offsets: (Uint32Array | undefined)[] = [];
  for (const found of listOf(recordOf(answer)['findings'])) {
    const index = recordOf(found)['text'];
    const text = typeof index === 'number' ? texts[index] : undefined;
    if (text === undefined) throw new Error('a finding names no text');
    const known = (offsets[index as number] ??= offsetsOf(text));
    hits[index as number]?.push(hitOf(known, found, 'entity'));
  }
  return hits;
}

/** A moderation gives no positions: the text as a whole is the finding. */
function moderationHits(texts: readonly string[], answer: unknown): ExternalHit[][] {
  const results = listOf(recordOf(answer)['results']);
  if (results.length !== texts.length) throw new Error('there is not one result for each text');
  return results.map((result, index) => {
    const { categories = {}, category_scores: scores = {} } = recordOf(result);
    const found = Object.entries(recordOf(categories));
    if (found.length > CATEGORIES_MAX) throw new Error('the answer has too many categories');
    const end = Buffer.byteLength(texts[index] ?? '');
    return found.flatMap(([entity, isFound]) => {
      const score = recordOf(scores)[entity];
      return isFound === true
        ? [{ entity: nameOf(entity), start: 0, end, score: typeof score === 'number' ? score : 1 }]
        : [];
    });
  });
}

function presidioHits(text: string, answer: unknown): ExternalHit[] {
  const offsets = offsetsOf(text);
  return listOf(answer).map((found) => hitOf(offsets, found, 'entity_type'));
}

function hitOf(offsets: Uint32Array, found: unknown, entityField: string): ExternalHit {
  const { start, end, score = 1, [entityField]: entity } = recordOf(found);
  if (typeof start !== 'number' || typeof end !== 'number' || typeof score !== 'number' || typeof entity !== 'string')
    throw new Error('a finding lacks its entity, start, end or score');
  const from = byteOffset(offsets, start);
  const to = byteOffset(offsets, end);
  if (from >= to) throw new Error('a finding has no length');
  return { entity: nameOf(entity), start: from, end: to, score };
}

/** Names go into records and answers, so they are shortened and other characters are replaced. */
function nameOf(entity: string): string {
  return entity.slice(0, ENTITY_LENGTH_MAX).replaceAll(/[^\w ./:-]/g, '_');
}

/**
 * Where each code point begins in the text's UTF-8, and where the last one ends. It is computed once for all findings
 * in the text.
 */
function offsetsOf(text: string): Uint32Array {
  const offsets = new Uint32Array(text.length + 1);
  let count = 0;
  for (const character of text) {
    offsets[count + 1] = (offsets[count] as number) + Buffer.byteLength(character);
    count += 1;
  }
  return offsets.subarray(0, count + 1);
}

/** A position outside the text becomes its beginning or end. */
function byteOffset(offsets: Uint32Array, codePoints: number): number {
  const at = Math.min(Math.max(0, Math.ceil(codePoints)), offsets.length - 1);
  return offsets[at] ?? 0;
}

function listOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new Error('the answer has no list of findings');
  if (value.length > HITS_MAX) throw new Error('the answer has too many findings');
  return value;
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new Error('the answer has another form');
  return value as Readonly<Record<string, unknown>>;
}
