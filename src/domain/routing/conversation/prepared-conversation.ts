// What auto routing knows of a conversation: the result of reading a request's body, and all that the rest of routing
// ever sees of it.

export type RoutedApi = 'chat_completions' | 'responses' | 'messages' | 'count_tokens';

/** What the worker task prepare-conversation is given. */
export interface PrepareConversationInput {
  readonly api: RoutedApi;
  readonly body: Uint8Array;
}

export interface PreparedConversation {
  /**
   * What the user wrote: up to two earlier messages, then the latest, each trimmed; empty when no message holds human
   * text.
   */
  readonly humanTexts: readonly string[];
  /**
   * Names the human turn: equal for all requests of one turn, another with the next human message or another first
   * message.
   */
  readonly turn: string;
  /** Hash of the first human message: side requests of an agent share its session, and differ in this. */
  readonly firstMessage: string;
  /** The same, when that message is long enough to tell conversations apart without a session. */
  readonly opener: string | null;
  readonly humanMessages: number;
  /** The session that the body names; never to be stored as it is. */
  readonly bodySession: string | null;
  readonly previousResponseId: string | null;
  /** `signed`: the history holds thoughts that only the model (or provider) that had them can read. */
  readonly reasoning: 'none' | 'signed';
  /** An earlier human message was answered. */
  readonly isFollowUp: boolean;
}
