// Plans what the simulated model says, independent of the dialect: reasoning, text and tool calls in that order, within
// the output limit.

import type { Directives } from './directives.ts';
import { generateTokens } from './generated-text.ts';
import { INVALID_UTF8 } from './reply-script.ts';
import type { ToolCall } from './tool-calls.ts';

const TOKENS_DEFAULT = 24;
/** The arguments of a tool call come in pieces of this many characters; each counts as a token. */
const ARGUMENT_PIECE_CHARACTERS = 8;
/** Gives reasoning other words than the text. */
const THOUGHT_SEED = 0x7407;

export type AnswerPart =
  | { readonly kind: 'thinking'; readonly tokens: number }
  | { readonly kind: 'text'; readonly tokens: number }
  | { readonly kind: 'tool_call'; readonly tokens: number; readonly call: ToolCall };

export interface PlannedAnswer {
  readonly parts: readonly AnswerPart[];
  /** The total of all parts. */
  readonly tokens: number;
  readonly finish: 'stop' | 'length' | 'tool_calls';
}

export interface AnswerParams {
  readonly directives: Directives;
  /** The request's output limit, which includes reasoning. */
  readonly limit: number | null;
  readonly thinkingTokens: number;
  readonly toolCalls: readonly ToolCall[];
}

export function planAnswer({ directives, limit, thinkingTokens, toolCalls }: AnswerParams): PlannedAnswer {
  const textTokens = directives.tokens ?? (toolCalls.length === 0 ? TOKENS_DEFAULT : 0);
  const wanted: AnswerPart[] = [];
  if (thinkingTokens > 0) wanted.push({ kind: 'thinking', tokens: thinkingTokens });
  if (textTokens > 0 || toolCalls.length === 0) wanted.push({ kind: 'text', tokens: textTokens });
  for (const call of toolCalls) wanted.push({ kind: 'tool_call', tokens: argumentPieces(call.input).length, call });
  let room = limit ?? Number.POSITIVE_INFINITY;
  const parts: AnswerPart[] = [];
  for (const part of wanted) {
    if (room === 0 && part.tokens > 0) break;
    parts.push({ ...part, tokens: Math.min(part.tokens, room) });
    room -= Math.min(part.tokens, room);
  }
  const tokens = sumTokens(parts);
  const finish = tokens < sumTokens(wanted) ? 'length' : toolCalls.length > 0 ? 'tool_calls' : 'stop';
  return { parts, tokens, finish };
}

export interface AnswerPiece {
  readonly text: string;
  /** False for pieces that `bytes=` and `invalid_utf8` add, which are not tokens. */
  readonly counted: boolean;
}

/** Yields the tokens of a part, then the pieces that directives add to a text. */
export function* answerPieces(part: AnswerPart, seed: number, directives: Directives): Generator<AnswerPiece> {
  if (part.kind === 'tool_call') {
    for (const text of argumentPieces(part.call.input).slice(0, part.tokens)) yield { text, counted: true };
    return;
  }
  const tokens = generateTokens(part.kind === 'thinking' ? seed ^ THOUGHT_SEED : seed);
  for (let count = 0; count < part.tokens; count += 1) yield { text: tokens.next().value, counted: true };
  if (part.kind === 'thinking') return;
  if (directives.bytes > 0) yield { text: 'x'.repeat(directives.bytes), counted: false };
  if (directives.invalidUtf8) yield { text: INVALID_UTF8, counted: false };
}

/** A part's whole text. */
export function answerText(part: AnswerPart, seed: number, directives: Directives): string {
  let whole = '';
  for (const { text } of answerPieces(part, seed, directives)) whole += text;
  return whole;
}

function argumentPieces(input: string): string[] {
  const characters = Array.from(input);
  const pieces: string[] = [];
  for (let start = 0; start < characters.length; start += ARGUMENT_PIECE_CHARACTERS) {
    pieces.push(characters.slice(start, start + ARGUMENT_PIECE_CHARACTERS).join(''));
  }
  return pieces;
}

function sumTokens(parts: readonly AnswerPart[]): number {
  return parts.reduce((sum, { tokens }) => sum + tokens, 0);
}
