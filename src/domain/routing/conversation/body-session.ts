// The session that a request's body names: a coding agent's `metadata.user_id` in its three forms, else a
// `prompt_cache_key` (spec 4.11).

import { asObject, type JsonObject, parseObject } from '../../usage/countable-text.ts';

/** Agents' are below 200; APIs allow 256 and 64. What is longer is no name. */
const NAME_UNITS_MAX = 512;
/** `user_<hash>_account_<uuid or nothing>_session_<uuid>`: Claude Code until 2.1. */
const SESSION_MARK = '_session_';

export function bodySessionOf(request: JsonObject): string | null {
  return sessionOfUserId(nameOf(asObject(request['metadata'])?.['user_id'])) ?? nameOf(request['prompt_cache_key']);
}

/** Claude Code since 2.1 writes JSON with a `session_id`; anything else is a name by itself, such as a bare UUID. */
function sessionOfUserId(userId: string | null): string | null {
  if (userId === null) return null;
  if (userId.startsWith('{')) return nameOf(parseObject(userId)?.['session_id']);
  const mark = userId.lastIndexOf(SESSION_MARK);
  return userId.startsWith('user_') && mark !== -1 ? nameOf(userId.slice(mark + SESSION_MARK.length)) : userId;
}

function nameOf(value: unknown): string | null {
  if (typeof value !== 'string' || value.length > NAME_UNITS_MAX) return null;
  return value.trim() || null;
}
