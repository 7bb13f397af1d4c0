// Collects what auto routing needs of a conversation while a dialect's reader passes it message by message.

import { hash } from 'node:crypto';
import { humanTextOf, trimmedForClassifier } from './human-text.ts';
import type { PreparedConversation } from './prepared-conversation.ts';

/** The latest message and up to two earlier ones (spec 4.11). */
export const HUMAN_TEXTS_MAX = 3;
/** Shorter first messages ("hi", "continue") do not distinguish conversations. */
export const OPENER_CHARACTERS_MIN = 24;

export class ConversationReader {
  #first: string | null = null;
  readonly #latest: string[] = [];
  #humanMessages = 0;
  #hasModelSpoken = false;
  #isFollowUp = false;
  #isSigned = false;

  /**
   * A message with the role `user`. One without human text (a tool's result, an agent's context) does not count as the
   * user's.
   */
  userMessage(content: unknown): void {
    const text = humanTextOf(content);
    if (text === '') return;
    this.#first ??= text;
    this.#humanMessages++;
    this.#latest.push(text);
    if (this.#latest.length > HUMAN_TEXTS_MAX) this.#latest.shift();
    this.#isFollowUp = this.#hasModelSpoken;
  }

  /** A model's message before the first human one answers nothing: some clients open with a greeting. */
  modelMessage(): void {
    if (this.#first !== null) this.#hasModelSpoken = true;
  }

  /** Reasoning that is signed or encrypted: only the model (or provider) that produced it accepts it back. */
  signedReasoning(): void {
    this.#isSigned = true;
  }

  finish(names: Pick<PreparedConversation, 'bodySession' | 'previousResponseId'>): PreparedConversation {
    const first = this.#first ?? '';
    const firstMessage = hashOf([first]);
    return {
      humanTexts: trimmedForClassifier(this.#latest),
      turn: hashOf([first, String(this.#humanMessages), this.#latest.at(-1) ?? '']),
      firstMessage,
      opener: hasCharacters(first, OPENER_CHARACTERS_MIN) ? firstMessage : null,
      humanMessages: this.#humanMessages,
      ...names,
      reasoning: this.#isSigned ? 'signed' : 'none',
      isFollowUp: this.#isFollowUp,
    };
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
