// The result of an operation on stored state that could not be done, before it becomes a refusal to a client.

/** `not_found` is also the answer for an object of another organization. */
export interface Refused {
  readonly refused:
    | 'not_found'
    | 'conflict'
    | 'owner_floor'
    | 'permission_denied'
    | 'invalid'
    | 'byok_disabled'
    | 'byok_kind_not_allowed'
    | 'byok_encryption_unconfigured';
  /** For `conflict` and `invalid`: the field concerned, named as in the operation's input. */
  readonly field?: string;
  readonly reason?: string;
}

/** A field of an operation's input as clients and operators write it. */
export function snakeCase(field: string): string {
  return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function isRefused(result: unknown): result is Refused {
  return typeof result === 'object' && result !== null && 'refused' in result;
}
