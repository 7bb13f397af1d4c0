// Answers POST /profile on the admin address: takes a profile of a process, for callers with ADMIN_TOKEN.

import { createHash, timingSafeEqual } from 'node:crypto';
import { PROFILE_KINDS, type ProfileKind } from '../platform/profile.ts';

const SECONDS = 10;
const SECONDS_MAX = 60;

export interface ProfileSource {
  /** null: nobody may take profiles. */
  readonly adminToken: string | null;
  /** The names of the processes. */
  readonly processes: () => readonly string[];
  /** null: the process did not answer, or takes another profile already. */
  readonly take: (process: string, kind: ProfileKind, seconds: number) => Promise<string | null>;
}

export interface ProfileAnswer {
  readonly status: number;
  /** A line of text, unless the status is 200. */
  readonly body: string;
}

export async function answerProfile(
  source: ProfileSource,
  { method, query, authorization }: { method: string; query: string; authorization: string },
): Promise<ProfileAnswer> {
  if (source.adminToken === null) return { status: 403, body: 'profiles need ADMIN_TOKEN, and none is set\n' };
  if (!isSame(authorization, `Bearer ${source.adminToken}`))
    return { status: 401, body: 'send ADMIN_TOKEN: "Authorization: Bearer ..."\n' };
  if (method !== 'POST') return { status: 405, body: 'profiles are taken by POST\n' };
  const parameters = new URLSearchParams(query);
  const names = source.processes();
  const process = parameters.get('process') ?? names[0] ?? '';
  if (!names.includes(process)) return { status: 400, body: `process: must be one of ${names.join(', ')}\n` };
  const kind = PROFILE_KINDS.find((one) => one === (parameters.get('kind') ?? 'cpu'));
  if (kind === undefined) return { status: 400, body: `kind: must be one of ${PROFILE_KINDS.join(', ')}\n` };
  const seconds = Number(parameters.get('seconds') ?? SECONDS);
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    return { status: 400, body: `seconds: must be above 0 and at most ${SECONDS_MAX}\n` };
  const profile = await source.take(process, kind, seconds);
  if (profile === null) return { status: 503, body: `${process} did not answer, or another profile is being taken\n` };
  return { status: 200, body: profile };
}

/** Compares hashes, so that the duration reveals neither the length nor the first difference. */
function isSame(one: string, other: string): boolean {
  const [first, second] = [one, other].map((text) => createHash('sha256').update(text).digest());
  return timingSafeEqual(first as Buffer, second as Buffer);
}
