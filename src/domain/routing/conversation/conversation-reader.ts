// Gathers what a conversation says about itself while a dialect reads it message by message: the same notes for every
// dialect.

import { hash } from 'node:crypto';
import { humanTextOf, trimmedForClassifier } from './human-text.ts';
import type { PreparedConversation } from './prepared-conversation.ts';

/** The latest message and up to two earlier ones (spec 4.11). */
const HUMAN_TEXTS_MAX = 3;
/** Shorter first messages ("hi", "continue") do not tell conversations apart. */
const OPENER_CHARACTERS_MIN = 24;

export class ConversationReader {
  #first: string | null = null;
  readonly #latest: string[] = [];
  #humanMessages = 0;
  #hasModelSpoken = false;
  #isFollowUp = false;
  #isSigned = false;

  /**
   * A message in the user's name; one without human text (a tool's result, an agent's context) is none of the user's.
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

  /** Before the first human message it is no answer: some clients open with a greeting. */
  modelMessage(): void {
    if (this.#first !== null) this.#hasModelSpoken = true;
  }

  /** A thought under a signature or encryption, which only the model (or provider) that had it accepts back. */
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
 * Whole texts, not what was left after trimming. Their lengths keep one text's end apart from the next one's beginning.
 */
function hashOf(texts: readonly string[]): string {
  return hash('sha256', texts.map((text) => `${text.length}:${text}`).join(''), 'base64url');
}

/** A character outside the basic plane is two units. */
function hasCharacters(text: string, min: number): boolean {
  return text.length >= min && (text.length >= 2 * min || Array.from(text).length >= min);
}
