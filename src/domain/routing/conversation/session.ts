// Finds the session of a request (spec 4.11): in a header, else in the body, else from the first message.

import { hash } from 'node:crypto';
import type { PreparedConversation } from './prepared-conversation.ts';

export interface Session {
  readonly kind: 'header' | 'body' | 'opener';
  /** As the client sent it, or the hash of its first message; kept and shown only as `sessionHash`. */
  readonly value: string;
}

/**
 * Tried in this order. `x-client-request-id` is not among them: Codex sends its session in it, but other clients send a
 * new id with each request. Codex's subagents share its `session-id` and have a `thread-id` of their own.
 */
export const SESSION_HEADERS: readonly string[] = [
  'x-session-id',
  'x-claude-code-session-id',
  'thread-id',
  'session-id',
  'session_id',
  'x-session-affinity',
  'x-opencode-session',
  'x-conversation-id',
  'conversation_id',
  'x-thread-id',
  'thread_id',
  'x-amp-thread-id',
];

export function sessionOf(
  header: (name: string) => string | null | undefined,
  prepared: Pick<PreparedConversation, 'bodySession' | 'opener'>,
): Session | null {
  for (const name of SESSION_HEADERS) {
    const value = header(name)?.trim();
    if (value !== undefined && value !== '') return { kind: 'header', value };
  }
  if (prepared.bodySession !== null) return { kind: 'body', value: prepared.bodySession };
  return prepared.opener === null ? null : { kind: 'opener', value: prepared.opener };
}

/**
 * The organization is part of the hash: the same name in another organization is another session. Whether a header or
 * the body names it makes no difference.
 */
export function sessionHash(organizationId: string, session: Session): string {
  return hash('sha256', JSON.stringify([organizationId, session.value]), 'base64url');
}
