// Finds the texts of a Messages request and reply that make up its tokens, for counting them when the provider reported
// no usage.

import {
  asObject,
  type CountableDialect,
  type CountableText,
  type JsonObject,
  objectsOf,
  parseObject,
  pushJson,
  pushText,
  TOKENS_OF_PRIMING,
  TOKENS_PER_MESSAGE,
  textOfReply,
} from './countable-text.ts';
import { readEvents } from './event-payloads.ts';

export const messagesText: CountableDialect = { requestText, responseText, streamText };

function requestText(body: string): CountableText | null {
  const request = parseObject(body);
  if (request === null || !Array.isArray(request['messages'])) return null;
  const messages = objectsOf(request['messages']);
  const texts: string[] = [];
  pushContent(texts, request['system']);
  const wrapped = messages.length + (texts.length > 0 ? 1 : 0);
  for (const message of messages) {
    pushText(texts, message['role']);
    pushContent(texts, message['content']);
  }
  pushJson(texts, request['tools']);
  pushJson(texts, asObject(request['output_config'])?.['format'] ?? request['output_format']);
  return { texts, formatTokens: TOKENS_OF_PRIMING + TOKENS_PER_MESSAGE * wrapped };
}

/** Fields of tool results, search results and documents that contain text. */
const CONTENT_FIELDS = ['text', 'thinking', 'title', 'context', 'stdout', 'stderr', 'tool_name'];

/**
 * Collects all texts of content: a string, a block or a list of blocks, where results and documents contain more
 * content. Not by recursion, since a client decides how deep it goes. Base64, encrypted parts and signatures have no
 * text to count.
 */
function pushContent(texts: string[], content: unknown): void {
  const pending = [content];
  while (pending.length > 0) {
    const next = pending.pop();
    if (Array.isArray(next)) for (const part of next as unknown[]) pending.push(part);
    if (pushText(texts, next)) continue;
    const block = asObject(next);
    if (block === null) continue;
    for (const field of CONTENT_FIELDS) pushText(texts, block[field]);
    pushCall(texts, block);
    pending.push(block['content']);
    // The source of a search result is its address; the source of a document or an image is an object.
    const source = asObject(block['source']);
    if (source === null) pushText(texts, block['source']);
    else if (source['type'] === 'text') pushText(texts, source['data']);
    else if (source['type'] === 'content') pending.push(source['content']);
  }
}

function pushCall(texts: string[], block: JsonObject): void {
  pushText(texts, block['name']);
  pushText(texts, inputOf(block));
}

/** The JSON that the model wrote as the call's input; empty for a call without arguments. */
function inputOf(block: JsonObject): string {
  const input = asObject(block['input']);
  return input === null || Object.keys(input).length === 0 ? '' : JSON.stringify(input);
}

/**
 * Only what the model wrote: the results of a provider's own tools are among the blocks of a reply, but they are input.
 */
function responseText(body: string): CountableText | null {
  return textOfReply(body, (response) =>
    Array.isArray(response['content']) ? textsWritten(response['content']) : null,
  );
}

function textsWritten(content: unknown): string[] {
  const texts: string[] = [];
  for (const block of objectsOf(content)) {
    for (const text of writtenTexts(block)) pushText(texts, text);
    pushCall(texts, block);
  }
  return texts;
}

function writtenTexts(block: JsonObject): unknown[] {
  return [block['text'], block['thinking'], block['type'] === 'compaction' ? block['content'] : null];
}

/**
 * A block of a streamed reply. Its texts grow from those it began with; the input of a call comes in pieces, or whole
 * at the beginning.
 */
interface StreamedBlock {
  readonly name: unknown;
  readonly parts: unknown[];
  readonly inputParts: unknown[];
  readonly inputAtStart: string;
}

function streamText(body: string): CountableText | null {
  const blocks: StreamedBlock[] = [];
  const openBlocks = new Map<unknown, StreamedBlock>();
  const open = (index: unknown, block: JsonObject): StreamedBlock => {
    const streamed = { name: block['name'], parts: writtenTexts(block), inputParts: [], inputAtStart: inputOf(block) };
    openBlocks.set(index, streamed);
    blocks.push(streamed);
    return streamed;
  };
  let events = 0;
  let contentAtStart: unknown = null;
  for (const { event } of readEvents(body)) {
    const { type, index } = event;
    if (type === 'content_block_start') open(index, asObject(event['content_block']) ?? {});
    else if (type === 'content_block_delta')
      continueBlock(openBlocks.get(index) ?? open(index, {}), asObject(event['delta']));
    else if (type === 'message_start') contentAtStart = asObject(event['message'])?.['content'];
    else continue;
    events++;
  }
  if (events === 0) return null;
  return { texts: blocks.length === 0 ? textsWritten(contentAtStart) : blocks.flatMap(textsOfBlock), formatTokens: 0 };
}

function continueBlock(block: StreamedBlock, delta: JsonObject | null): void {
  if (delta?.['type'] === 'input_json_delta') block.inputParts.push(delta['partial_json']);
  else
    block.parts.push(
      delta?.['text'] ?? delta?.['thinking'] ?? (delta?.['type'] === 'compaction_delta' ? delta['content'] : null),
    );
}

/** A token can span deltas, so they are joined before counting. */
function textsOfBlock({ name, parts, inputParts, inputAtStart }: StreamedBlock): string[] {
  const texts: string[] = [];
  pushText(texts, name);
  pushText(texts, joinTexts(parts));
  pushText(texts, joinTexts(inputParts) || inputAtStart);
  return texts;
}

function joinTexts(parts: readonly unknown[]): string {
  return parts.filter((part) => typeof part === 'string').join('');
}
