// The contract and the shared parts of the files that find a dialect's countable texts. Everything they read was
// written by a client or a provider: it may have any shape, and what is not understood is left out, never thrown on.

import { closeCutJson } from './cut-json.ts';

/** Texts to tokenize, and the number of tokens that the format adds around them. */
export interface CountableText {
  readonly texts: readonly string[];
  readonly formatTokens: number;
  /**
   * Bytes that come once before a reply's texts, however long it gets; they are left out when the count of a prefix is
   * scaled up.
   */
  readonly leadBytes?: number;
}

/** Finds the texts of one dialect. null: the body is not of the dialect, or too little of it is there. */
export interface CountableDialect {
  requestText(body: string): CountableText | null;
  /** Texts of a JSON reply, whole or cut. */
  responseText(body: string): CountableText | null;
  /** Texts of an event stream, whole or cut: those in complete events. */
  streamText(body: string): CountableText | null;
}

/**
 * OpenAI's published recipe: every message adds 3 tokens, a name 1 more, and the reply is primed with 3. The other
 * dialects come close to it.
 */
export const TOKENS_PER_MESSAGE = 3;
export const TOKENS_PER_NAME = 1;
export const TOKENS_OF_PRIMING = 3;

export type JsonObject = Readonly<Record<string, unknown>>;

/** A JSON reply and the texts that `collect` finds in it; null when it is not one, or was cut before its first text. */
export function textOfReply(
  body: string,
  collect: (reply: JsonObject) => readonly string[] | null,
): CountableText | null {
  const whole = parseObject(body);
  const reply = whole ?? parseObject(closeCutJson(body) ?? '');
  const texts = reply === null ? null : collect(reply);
  if (texts === null || (whole === null && texts.length === 0)) return null;
  return { texts, formatTokens: 0 };
}

/** Content is a string or a list of parts; parts that are not text (images, audio, files) have no text to count. */
export function textsOfContent(content: unknown): string[] {
  if (typeof content === 'string') return [content];
  if (!Array.isArray(content)) return [];
  const texts: string[] = [];
  for (const part of content as unknown[]) {
    if (typeof part === 'string') texts.push(part);
    const object = asObject(part);
    pushText(texts, object?.['text']);
    pushText(texts, object?.['refusal']);
  }
  return texts;
}

export function pushText(texts: string[], value: unknown): boolean {
  if (typeof value !== 'string' || value === '') return false;
  texts.push(value);
  return true;
}

/** How a provider presents tools and schemas to its model is not public; the JSON that the client sent is close. */
export function pushJson(texts: string[], value: unknown): void {
  if (typeof value === 'object' && value !== null) texts.push(JSON.stringify(value, withoutAttachment));
}

/** An image can be part of a tool's settings, as the mask of an image tool is. */
function withoutAttachment(_key: string, value: unknown): unknown {
  return typeof value === 'string' && /^data:[^,]{0,200};base64,/.test(value) ? undefined : value;
}

export function parseObject(text: string): JsonObject | null {
  try {
    return asObject(JSON.parse(text));
  } catch {
    return null;
  }
}

export function asObject(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

/** The objects of a list; empty when it is not a list. */
export function objectsOf(values: unknown): JsonObject[] {
  return Array.isArray(values) ? values.map(asObject).filter((value) => value !== null) : [];
}
