// Finds the session that a request's body names: in a coding agent's `metadata.user_id`, which has three forms, in the
// `conversation` that a provider keeps, or else in `prompt_cache_key` (spec 4.11).

import { asObject, type JsonObject, parseObject } from '../../usage/countable-text.ts';

/** Agents' names are below 200 units; the APIs allow 256 and 64. Anything longer is not a session name. */
const NAME_UNITS_MAX = 512;
/** Claude Code up to 2.1 wrote `user_<hash>_account_<uuid or nothing>_session_<uuid>`. */
const SESSION_MARK = '_session_';

export function bodySessionOf(request: JsonObject): string | null {
  const { conversation } = request;
  return (
    sessionOfUserId(nameOf(asObject(request['metadata'])?.['user_id'])) ??
    nameOf(asObject(conversation)?.['id'] ?? conversation) ??
    nameOf(request['prompt_cache_key'])
  );
}

/** Claude Code since 2.1 writes JSON with a `session_id`; any other text, such as a bare UUID, is the name itself. */
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
