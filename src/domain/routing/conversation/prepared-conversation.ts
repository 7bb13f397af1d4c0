// What auto routing knows of a conversation: the result of reading a request's body, and the only part of it that
// routing sees.

import type { RoutedApi } from '../../models/apis.ts';

/** The input of the worker task prepare-conversation. */
export interface PrepareConversationInput {
  readonly api: RoutedApi;
  readonly body: Uint8Array;
}

export interface PreparedConversation {
  /**
   * What the user wrote: up to two earlier messages, then the latest, each trimmed; empty when no message has human
   * text.
   */
  readonly humanTexts: readonly string[];
  /**
   * Names the human turn within its conversation: equal for all requests of a turn, different after the next human
   * message, whatever has been cut from the history.
   */
  readonly turn: string;
  /** The name of the turn before it; null: the body does not show that turn. */
  readonly previousTurn: string | null;
  /** A model has answered the latest human message already. */
  readonly isInToolLoop: boolean;
  readonly offersTools: boolean;
  /** Hash of the first words of the system prompt. */
  readonly instructions: string;
  /** The request's own words say that it belongs to no conversation, whatever session it names. */
  readonly isSideRequest: boolean;
  /** Hash of the first human message. */
  readonly firstMessage: string;
  /** The same hash, if that message is long enough to identify a conversation without a session. */
  readonly opener: string | null;
  /** The session that the body names. It is never stored in clear. */
  readonly bodySession: string | null;
  readonly previousResponseId: string | null;
  /** `signed`: the history contains reasoning that only the model (or provider) that produced it can read. */
  readonly reasoning: 'none' | 'signed';
  /** Size of the body without encoded attachments, from which the number of tokens is estimated. */
  readonly textBytes: number;
  /** An earlier human message was answered. */
  readonly isFollowUp: boolean;
}
