// Extracts what the user wrote in one message of any dialect, and trims a conversation's texts for the classifier (spec
// 4.11).

import { asObject } from '../../usage/countable-text.ts';
import { isInsidePair } from '../../usage/long-runs.ts';
import { answerWithResult, withoutAgentContext } from './context-blocks.ts';

/** opencode: a part that begins with this is followed by a part with what the tool read. */
const READ_CALL_OPENING = 'Called the Read tool with the following input:';
/**
 * Cline and Roo Code without native tools write `[read_file for 'a.ts'] Result:`; the rest of the message is the
 * result.
 */
const RESULT_MARK = '] Result:';
const RESULT_MARK_WITHIN = 2000;

/** The most that is sent of a conversation, in UTF-16 units. */
const TEXTS_UNITS_MAX = 4000;
/** The most that is sent of each message before the latest. */
const EARLIER_UNITS_MAX = 600;
const CUT_MARK = '\n[...]\n';

/** Empty when the message has no human text. Images, files and tool results have none. */
export function humanTextOf(content: unknown): string {
  if (typeof content === 'string')
    return isToolResult(content) ? answerWithResult(content) : withoutAgentContext(content);
  if (!Array.isArray(content)) return '';
  const texts: string[] = [];
  let isAfterResult = false;
  let isAfterReadCall = false;
  for (const part of content as unknown[]) {
    const text = textOfPart(part);
    const isRead = isAfterReadCall;
    isAfterReadCall = text?.startsWith(READ_CALL_OPENING) ?? false;
    if (text === null || isRead || isAfterReadCall) continue;
    isAfterResult ||= isToolResult(text);
    const human = isAfterResult ? answerWithResult(text) : withoutAgentContext(text);
    if (human !== '') texts.push(human);
  }
  return texts.join('\n');
}

function textOfPart(part: unknown): string | null {
  const object = asObject(part);
  if (object === null || (object['type'] !== 'text' && object['type'] !== 'input_text')) return null;
  return typeof object['text'] === 'string' ? object['text'] : null;
}

/** The names of these agents' tools contain an underscore; a user's own `[list] Result:` hardly does. */
function isToolResult(text: string): boolean {
  if (!text.startsWith('[')) return false;
  const head = text.slice(0, RESULT_MARK_WITHIN);
  const mark = head.indexOf(RESULT_MARK);
  const space = head.indexOf(' ');
  const name = head.slice(1, space === -1 ? mark : Math.min(space, mark));
  return mark !== -1 && name.includes('_');
}

/**
 * Oldest first. The latest text gets the room that the earlier ones leave. Of a long text the beginning and the end are
 * kept, where a request is usually stated.
 */
export function trimmedForClassifier(texts: readonly string[]): string[] {
  const earlier = texts.slice(0, -1).map((text) => shortened(text, EARLIER_UNITS_MAX));
  const units = earlier.reduce((sum, text) => sum + text.length, 0);
  return [...earlier, ...texts.slice(-1).map((text) => shortened(text, TEXTS_UNITS_MAX - units))];
}

function shortened(text: string, unitsMax: number): string {
  if (text.length <= unitsMax) return text.toWellFormed();
  const room = unitsMax - CUT_MARK.length;
  const tail = Math.floor(room / 2);
  const head = cutAtCodePoint(text, 0, room - tail);
  const end = cutAtCodePoint(text, text.length - tail, text.length);
  return `${head}${CUT_MARK}${end}`.toWellFormed();
}

/** Drops half of a surrogate pair at either end. */
function cutAtCodePoint(text: string, start: number, end: number): string {
  const from = isInsidePair(text, start) ? start + 1 : start;
  return text.slice(from, isInsidePair(text, end) ? end - 1 : end);
}
