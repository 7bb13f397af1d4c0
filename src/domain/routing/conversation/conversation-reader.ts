// Collects what auto routing needs of a conversation while a dialect's reader passes it message by message.

import { hash } from 'node:crypto';
import { textsOfContent } from '../../usage/countable-text.ts';
import { humanTextOf, trimmedForClassifier } from './human-text.ts';
import type { PreparedConversation } from './prepared-conversation.ts';
import { isSideRequest } from './side-requests.ts';

/** The latest message and up to two earlier ones (spec 4.11). */
export const HUMAN_TEXTS_MAX = 3;
/** Shorter first messages ("hi", "continue") do not distinguish conversations. */
export const OPENER_CHARACTERS_MIN = 24;
/** Agents' prompts differ in their first words; what comes later changes from day to day. */
const INSTRUCTIONS_HEAD_UNITS = 200;
/** Claude Code puts this before its prompt, with a checksum that changes. */
const BILLING_LINE = 'x-anthropic-billing-header:';

export class ConversationReader {
  /** The human text of each message that has any. */
  private readonly texts: string[] = [];
  /** Where the messages of the latest turn begin, and those of the turn before it. */
  private turnStart = 0;
  private previousTurnStart: number | null = null;
  /** A model has spoken since the latest human message. */
  private isAnswered = false;
  private instructionText = '';
  private isSigned = false;

  /** A system prompt, or a part of it. */
  instructions(content: unknown): void {
    for (const text of textsOfContent(content)) {
      if (this.instructionText.length >= INSTRUCTIONS_HEAD_UNITS) return;
      if (!text.startsWith(BILLING_LINE)) this.instructionText += text.slice(0, INSTRUCTIONS_HEAD_UNITS);
    }
  }

  /**
   * A message with the role `user`. One without human text (a tool's result, an agent's context) does not count as the
   * user's. Messages that follow each other without an answer are of one turn.
   */
  userMessage(content: unknown): void {
    const text = humanTextOf(content);
    if (text === '') return;
    if (this.isAnswered) {
      this.previousTurnStart = this.turnStart;
      this.turnStart = this.texts.length;
      this.isAnswered = false;
    }
    this.texts.push(text);
  }

  /** A model's message before the first human one answers nothing: some clients open with a greeting. */
  modelMessage(): void {
    if (this.texts.length > 0) this.isAnswered = true;
  }

  /** Reasoning that is signed or encrypted: only the model (or provider) that produced it accepts it back. */
  signedReasoning(): void {
    this.isSigned = true;
  }

  finish(
    request: Pick<PreparedConversation, 'bodySession' | 'previousResponseId' | 'offersTools' | 'textBytes'>,
  ): PreparedConversation {
    const first = this.texts[0] ?? '';
    const firstMessage = hashOf([first]);
    const previousStart = this.previousTurnStart;
    return {
      humanTexts: trimmedForClassifier(this.texts.slice(-HUMAN_TEXTS_MAX)),
      turn: this.nameTurn(this.turnStart, this.texts.length),
      previousTurn: previousStart === null ? null : this.nameTurn(previousStart, this.turnStart),
      isInToolLoop: this.isAnswered,
      instructions: hashOf([this.instructionText.slice(0, INSTRUCTIONS_HEAD_UNITS)]),
      isSideRequest: isSideRequest(first),
      firstMessage,
      opener: hasCharacters(first, OPENER_CHARACTERS_MIN) ? firstMessage : null,
      ...request,
      reasoning: this.isSigned ? 'signed' : 'none',
      isFollowUp: this.turnStart > 0,
    };
  }

  /**
   * The name of a turn is a hash of its own texts and of how often its last text has occurred. The rest of the history
   * does not count, since a client may cut it, compact it or leave it to the provider.
   */
  private nameTurn(start: number, end: number): string {
    const latest = this.texts[end - 1];
    let times = 0;
    for (let index = 0; index < end; index++) if (this.texts[index] === latest) times++;
    return hashOf([...this.texts.slice(start, end), String(times)]);
  }
}

/**
 * Hashes the whole texts, not the trimmed ones. Each text's length is hashed too, so that moving a character from one
 * text to the next changes the hash.
 */
function hashOf(texts: readonly string[]): string {
  return hash('sha256', texts.map((text) => `${text.length}:${text}`).join(''), 'base64url');
}

/** Counts characters: one outside the basic plane is two UTF-16 units. */
function hasCharacters(text: string, min: number): boolean {
  return text.length >= min && (text.length >= 2 * min || Array.from(text).length >= min);
}
