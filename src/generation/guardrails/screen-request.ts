// Screens a request before any step that uses its body: applies the rules in force to its texts, and replaces the body
// if some text must be rewritten (spec 7.7).

import type { Buffer } from 'node:buffer';
import { createHash } from 'node:crypto';
import type { TextEdit } from '../../domain/guardrails/body-screen.ts';
import { type CompiledPolicy, stageOf } from '../../domain/guardrails/compile-policy.ts';
import type { CloakScopes } from '../../domain/guardrails/placeholders.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { firstItemAt, NOT_THERE, valueEnd } from '../../platform/bytes/json-members.ts';
import { withSocketsRead } from '../../platform/event-loop/tick.ts';
import { inTurnsOf } from '../../platform/worker-pool.ts';
import type { ReadRequest } from '../dialects/dialect.ts';
import type { OpenRequest } from '../open-request.ts';
import type { DataPlane } from '../plane.ts';
import { scanMultipart } from '../request/multipart-scan.ts';
import { refuseScan } from '../request/read-request.ts';
import type { ScannedBody } from '../request/scanned-body.ts';
import { type PoliciesInForce, rulesOf } from './policies-in-force.ts';
import { type AskedWhole, refusalOfUnread, screenAndAsk } from './screen-and-ask.ts';
import { Screening } from './screening.ts';

/** Returns the request as it goes on; unchanged if nothing had to be rewritten. */
export function screenRequest(
  plane: DataPlane,
  request: OpenRequest,
  read: ReadRequest,
): ReadRequest | Refusal | Promise<ReadRequest | Refusal> {
  const policies = plane.policiesInForce();
  if (policies === null) return read;
  const { dialect, principal, received } = request;
  const found = policies.of(principal, dialect.api);
  if (found === null) return read;
  const compiled = rulesOf(found);
  if (compiled === 'refuse') return { kind: 'guardrail_unavailable' };
  if (compiled === null) return passUnscreened(plane, request, read);
  const isPartial = 'unavailable' in found;
  const external = { detectors: plane.externalDetectors, organizationId: principal.organizationId };
  const screening = new Screening(compiled, plane.guardrailHeaders, external, isPartial);
  request.screening = screening;
  request.exchange.screeningHeaders = screening.headers();
  const stage = stageOf(compiled, 'input');
  if (stage === null) {
    if (isPartial) screening.onInput(NOTHING_SCANNED);
    return read;
  }
  const whole = {
    stage: 'input' as const,
    body: received.body,
    places: dialect.texts,
    parts: received.form?.texts ?? null,
  };
  const cloaking = { scopes: scopesOf(compiled, policies, request), values: null };
  const by = {
    workers: inTurnsOf(plane.relay.workers, principal.organizationId),
    ask: (texts: readonly string[]) => plane.externalDetectors.ask(compiled, stage, principal.organizationId, texts),
  };
  const screened = screenAndAsk(by, compiled, whole, cloaking);
  if (!(screened instanceof Promise)) return goOn(plane, request, read, screened);
  return withSocketsRead(screened).then((found) =>
    request.exchange.closed ? read : goOn(plane, request, read, found),
  );
}

const NOTHING_SCANNED = { report: { action: 'none' }, blocked: null, restorable: [] } as const;

function passUnscreened(plane: DataPlane, request: OpenRequest, read: ReadRequest): ReadRequest {
  request.screening = new Screening(null, plane.guardrailHeaders);
  request.screening.onInput({ report: { action: 'none', not_scanned: ['policy'] }, blocked: null, restorable: [] });
  return read;
}

function goOn(plane: DataPlane, request: OpenRequest, read: ReadRequest, found: AskedWhole): ReadRequest | Refusal {
  const { screening } = request;
  const compiled = screening?.compiled ?? null;
  if (screening === null || compiled === null) throw new Error('a request is screened without its rules');
  const screened = withUnread(found, request);
  screening.onInput(screened);
  request.exchange.screeningHeaders = screening.headers();
  if (screened.blocked !== null) return screening.refusalOf(screened.blocked, 'input');
  const unread = refusalOfUnread(screened, compiled);
  if (unread !== null) return unread;
  if (screened.edits.length === 0) return read;
  return rewrite(plane, request, screened.edits);
}

/** Adds to the report what cannot be read: attachments and encoded parts. */
function withUnread(screened: AskedWhole, { received: { scanned, form } }: OpenRequest): AskedWhole {
  const missed = new Set(screened.report.not_scanned);
  if ((scanned?.attachments ?? 0) + (form?.images ?? 0) + (form?.masks ?? 0) > 0) missed.add('attachment');
  if ((form?.encodedTexts ?? 0) > 0) missed.add('malformed');
  return missed.size === 0 ? screened : { ...screened, report: { ...screened.report, not_scanned: [...missed] } };
}

/**
 * Writes the body with its edits, and reads it again: its grammar, and where its fields are. A failure there is a fault
 * of ours.
 */
function rewrite(plane: DataPlane, request: OpenRequest, edits: readonly TextEdit[]): ReadRequest | Refusal {
  const { received, exchange, principal } = request;
  const { buffers, scanner } = plane.intake;
  const bytes = edits.reduce(
    (sum, { start, end, replacement }) => sum + replacement.length - (end - start),
    received.body.length,
  );
  const pooled = buffers.tryAcquire(bytes, principal.organizationId);
  if (pooled === null) return { kind: 'overloaded' };
  try {
    const body = pooled.buffer.subarray(0, bytes);
    writeEdited(received.body, edits, body);
    const scanned = scanAgain(scanner, body, received, exchange.contentType);
    return request.replaceBody({ ...scanned, pooled });
  } catch (fault) {
    buffers.release(pooled);
    throw fault;
  }
}

function writeEdited(body: Buffer, edits: readonly TextEdit[], target: Buffer): void {
  let at = 0;
  let to = 0;
  for (const { start, end, replacement } of edits) {
    to += body.copy(target, to, at, start);
    to += replacement.copy(target, to);
    at = end;
  }
  body.copy(target, to, at);
}

function scanAgain(
  scanner: DataPlane['intake']['scanner'],
  body: Buffer,
  { form }: ScannedBody,
  contentType: string,
): ScannedBody {
  if (form === null) {
    const scanned = scanner.scan(body);
    if (refuseScan(scanned) !== null) throw new Error(`a request is invalid after screening: ${scanned.fault}`);
    return { body, scanned, form: null };
  }
  const again = scanMultipart(body, contentType);
  if ('fault' in again) throw new Error(`a form is invalid after screening: ${again.fault}`);
  return { body, scanned: null, form: again };
}

/** The scopes of placeholders; null: no rule cloaks. */
function scopesOf(compiled: CompiledPolicy, policies: PoliciesInForce, request: OpenRequest): CloakScopes | null {
  if (stageOf(compiled, 'input')?.cloaks !== true) return null;
  const { organizationId, apiKeyId } = request.principal;
  const isByConversation = compiled.policies.some(({ rules }) =>
    rules.some(({ cloak }) => cloak.scope === 'conversation'),
  );
  return {
    key: policies.cloakKeyOf(organizationId),
    apiKeyId,
    conversation: isByConversation ? conversationOf(request) : '',
  };
}

/** A hash of the first message, which stays the same in every later turn. */
function conversationOf({ dialect, received: { body, scanned } }: OpenRequest): string {
  const input = scanned?.valueOf(dialect.inputField as 'messages') ?? null;
  if (input === null) return '';
  const first = input.kind === 'array' ? firstItemAt(body, input.start) : input.start;
  const end = first === NOT_THERE ? NOT_THERE : valueEnd(body, first);
  return end === NOT_THERE ? '' : createHash('sha256').update(body.subarray(first, end)).digest('base64');
}
