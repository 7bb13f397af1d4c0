// The expected no of one operation on stored state, before it is a refusal to a client.

/** `not_found` is also everything that belongs to somebody else. */
export interface Refused {
  readonly refused: 'not_found' | 'conflict' | 'owner_floor' | 'permission_denied' | 'invalid';
  /** For `conflict` and `invalid`: the field it is about, as the operation's input names it. */
  readonly field?: string;
  readonly reason?: string;
}

export function isRefused(result: unknown): result is Refused {
  return typeof result === 'object' && result !== null && 'refused' in result;
}
