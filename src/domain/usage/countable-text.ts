// What the readers of each dialect share when they gather the texts that make up a request's or a reply's tokens
// (DESIGN 4). Everything read was written by a client or a provider: any shape may come, and what is not understood is
// left out, never thrown on.

import { closeCutJson } from './cut-json.ts';

/** Texts to tokenize, and tokens that the format adds around them. */
export interface CountableText {
  readonly texts: readonly string[];
  readonly formatTokens: number;
  /**
   * Bytes that stand before a reply's texts and come once, however long it gets; they do not scale the count of a
   * beginning.
   */
  readonly leadBytes?: number;
}

/** Where the texts of one dialect are. null: the body is not of the dialect, or what came of it says nothing. */
export interface CountableDialect {
  requestText(body: string): CountableText | null;
  /** Of a JSON reply, whole or cut. */
  responseText(body: string): CountableText | null;
  /** Of an event stream, whole or cut: what reached the client in complete events. */
  streamText(body: string): CountableText | null;
}

/**
 * OpenAI's published recipe: every message is wrapped in 3 tokens, a name costs 1 more, and 3 prime the reply. Other
 * dialects come close by it.
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

/**
 * How a provider words tools and schemas to its model is not public; their JSON is close, and is what the client sent.
 */
export function pushJson(texts: string[], value: unknown): void {
  if (typeof value === 'object' && value !== null) texts.push(JSON.stringify(value, withoutAttachment));
}

/** An image can hide in a tool's settings, as the mask of an image tool does. */
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

/** The objects of a list; none when it is no list. */
export function objectsOf(values: unknown): JsonObject[] {
  return Array.isArray(values) ? values.map(asObject).filter((value) => value !== null) : [];
}
