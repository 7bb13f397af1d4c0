// Says what providers, replies and clients must contain in place of the planted texts (planted.ts).

import { findMarks } from './marks.ts';
import type { Exchange } from './plan.ts';
import { blockedWord, HOLE, type Piece, policyOf, same, words } from './planted.ts';
import type { Watch } from './watch.ts';
import { hasPolicy } from './world.ts';

export interface Onward {
  readonly body: Buffer;
  readonly modelAt: { readonly start: number; readonly end: number };
  /** The positions of placeholders, which nobody can know before. */
  readonly holes: readonly number[];
}

const PLACEHOLDER = /^TGE\d{12}$/;
/** A stream has this many characters of planted text in one event, so that every word is cut. */
const EVENT_CHARACTERS = 5;

/** The text that a provider must get, except for the model's name. */
export function onwardOf({ body, modelAt, planted }: Exchange): Onward | null {
  if (modelAt === null) return null;
  const at = planted === null ? -1 : body.indexOf(planted.text);
  if (planted === null || at === -1) return { body, modelAt, holes: [] };
  const holes: number[] = [];
  let text = '';
  for (const { arrives, cloaked } of planted.pieces) {
    if (cloaked === true) holes.push(at + text.length);
    text += arrives;
  }
  const moved = modelAt.start > at ? text.length - planted.text.length : 0;
  return {
    body: Buffer.concat([body.subarray(0, at), Buffer.from(text), body.subarray(at + planted.text.length)]),
    modelAt: { start: modelAt.start + moved, end: modelAt.end + moved },
    holes,
  };
}

/** Cuts `bytes`, which start at `start` in the body, so that each hole becomes an empty buffer of its own. */
export function cutAtHoles(bytes: Buffer, start: number, holes: readonly number[]): { parts: Buffer[]; cut: Buffer[] } {
  const parts: Buffer[] = [];
  const cut: Buffer[] = [];
  let at = 0;
  for (const hole of holes) {
    const from = hole - start;
    if (from < at || from >= bytes.length) continue;
    const empty = Buffer.alloc(HOLE.length);
    cut.push(empty);
    parts.push(bytes.subarray(at, from), empty);
    at = from + HOLE.length;
  }
  parts.push(bytes.subarray(at));
  return { parts, cut };
}

const PLANTED_REPLIES: ReadonlySet<string> = new Set(['chat', 'auto', 'responses', 'continued', 'messages']);

/**
 * Whether a reply has planted text. Where a stream breaks off, half a word counts as a word of its own, and its
 * expected result cannot be known.
 */
function isReplyPlanted({ kind, isStream, providerSteps }: Exchange): boolean {
  return PLANTED_REPLIES.has(kind) && !(isStream && providerSteps.includes('cuts its reply in the middle'));
}

export function blocksReply(exchange: Exchange): boolean {
  return exchange.planted?.end === 'blocks the reply' && hasPolicy(exchange.tenant) && isReplyPlanted(exchange);
}

/** The planted beginning of a reply, and what its client must get for it. */
function replyPieces(exchange: Exchange): Piece[] {
  const { planted, tenant, index } = exchange;
  if (planted === null || !isReplyPlanted(exchange)) return [];
  const values = planted.pieces.filter(({ cloaked }) => cloaked === true);
  return [
    ...planted.placeholders.flatMap((placeholder, place) => [
      { written: placeholder, arrives: values[place]?.written ?? '' },
      same(' '),
    ]),
    same(`${planted.stranger} `),
    ...words(tenant, index),
    same(planted.end === 'blocks the reply' ? `${blockedWord(tenant)} ` : ' '),
  ];
}

export function replyText(exchange: Exchange): { readonly written: string; readonly arrives: string } {
  const pieces = replyPieces(exchange);
  return {
    written: pieces.map(({ written }) => written).join(''),
    arrives: pieces.map(({ arrives }) => arrives).join(''),
  };
}

/**
 * The same as events. A replacement begins in the event in which the replaced text began, and nothing of that text
 * remains.
 */
export function replyEvents(exchange: Exchange): { readonly written: string; readonly arrives: string }[] {
  const events: { written: string; arrives: string }[] = [];
  let at = 0;
  for (const { written, arrives } of replyPieces(exchange)) {
    for (let place = 0; place < written.length; place += 1) {
      const event = (events[Math.floor(at / EVENT_CHARACTERS)] ??= { written: '', arrives: '' });
      event.written += written[place];
      if (written === arrives) event.arrives += written[place];
      else if (place === 0) event.arrives += arrives;
      at += 1;
    }
  }
  return events;
}

/** Checks a stream that a policy ended: the expected whole events, then the error and nothing else. */
export function checkBlockedReply(exchange: Exchange, text: string, expected: Buffer, watch: Watch): void {
  const where = `client of exchange ${exchange.index} of tenant ${exchange.tenant} (${exchange.kind}), a blocked reply`;
  const events = text.split('\n\n').filter((event) => event !== '');
  const last = events.pop() ?? '';
  const before = events.map((event) => `${event}\n\n`).join('');
  if (!expected.toString('latin1').startsWith(before)) watch.wrongBytes(Buffer.from(before, 'latin1'), exchange, where);
  if (!last.includes('guardrail') || !last.includes(policyOf(exchange.tenant)))
    watch.violation('wrong bytes', `${where}, ends so: ${last.slice(-300)}`);
  if (before.includes(blockedWord(exchange.tenant)))
    watch.violation('wrong bytes', `${where}: what was blocked stands in ${before.slice(-300)}`);
  checkWithoutValues(exchange, last, watch);
  for (const mark of findMarks(last))
    if (mark.tenant !== exchange.tenant) watch.violation('foreign mark', `${where}: ${JSON.stringify(mark)}`);
}

/** Checks an answer that the gateway itself gave to a client. */
export function checkGuardedRefusal(exchange: Exchange, status: number, text: string, watch: Watch): void {
  const { planted, tenant, index } = exchange;
  if (planted === null) return;
  const isBlocked = text.includes('guardrail_blocked');
  const mayBe = hasPolicy(tenant) && (planted.end === 'blocks the request' || blocksReply(exchange));
  if (isBlocked) watch.count(watch.faults, `policy ${planted.end}`);
  if (isBlocked && !mayBe)
    watch.violation('wrong bytes', `exchange ${index} of tenant ${tenant} is blocked for nothing: ${text}`);
  if (!isBlocked && hasPolicy(tenant) && planted.end === 'blocks the request' && status < 500)
    watch.violation('wrong bytes', `exchange ${index} of tenant ${tenant} is to be blocked: ${status} ${text}`);
  checkWithoutValues(exchange, text, watch);
}

/** An answer of the gateway itself never quotes a value. */
function checkWithoutValues({ planted, index }: Exchange, text: string, watch: Watch): void {
  const shown = planted?.hidden.find((value) => text.includes(value));
  if (shown !== undefined)
    watch.violation('wrong bytes', `client of exchange ${index}: ${shown} stands in a refusal: ${text.slice(-300)}`);
}

/**
 * The placeholders that providers have seen. An organization's value always has the same placeholder, and no two
 * organizations share one.
 */
export class SeenPlaceholders {
  private readonly byValue = new Map<string, string>();
  private readonly ownerOf = new Map<string, string>();
  private newest: { readonly tenant: number; readonly placeholder: string }[] = [];

  /** Takes the placeholders `found` in place of the exchange's values. */
  take({ tenant, index, planted }: Exchange, found: readonly Buffer[], watch: Watch): void {
    if (planted === null || found.length === 0) return;
    const values = planted.pieces.filter(({ cloaked }) => cloaked === true);
    const placeholders = found.map((bytes) => bytes.toString('latin1'));
    for (const [place, placeholder] of placeholders.entries())
      this.check(`tenant ${tenant}: ${values[place]?.written}`, placeholder, `exchange ${index}`, watch);
    planted.placeholders = placeholders;
    const [placeholder = ''] = placeholders;
    this.newest = [{ tenant, placeholder }, ...this.newest.filter((one) => one.tenant !== tenant)];
  }

  private check(value: string, placeholder: string, where: string, watch: Watch): void {
    const known = this.byValue.get(value) ?? placeholder;
    const owner = this.ownerOf.get(placeholder) ?? value;
    if (!PLACEHOLDER.test(placeholder))
      watch.violation('wrong bytes', `a provider, ${where}: no placeholder, but ${placeholder} for ${value}`);
    else if (known !== placeholder)
      watch.violation('wrong bytes', `a provider, ${where}: ${placeholder} for ${value}, before ${known}`);
    if (owner !== value)
      watch.violation('shared placeholder', `a provider, ${where}: ${placeholder} for ${value} and for ${owner}`);
    this.byValue.set(value, known);
    this.ownerOf.set(placeholder, owner);
  }

  /** Returns a placeholder that no request of this organization has produced. */
  strangerTo(tenant: number): string {
    return this.newest.find((one) => one.tenant !== tenant)?.placeholder ?? '';
  }
}
