// The Responses dialect: its control fields, its usage object, the events that end its stream (spec 4.1, 4.2).

import { APIS } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Usage, UsageDetails } from '../../domain/usage/usage.ts';
import { skipSpace } from '../../platform/bytes/json-bytes.ts';
import { readCount, readFlag, readText, readToolPrompt } from '../request/request-fields.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { OPENAI_FIELDS, type UnpricedRequests, withNamedCosts } from '../request/unpriced-fields.ts';
import { readResponseId } from '../sse/response-id.ts';
import { StoredReply } from '../sse/stored-reply.ts';
import { EventStreamEnd } from '../sse/stream-end.ts';
import { DATA_LINE } from '../sse/syntax.ts';
import { documentUsage, type EventLine, isDocument, lastEventUsage } from '../sse/usage-window.ts';
import type { Dialect, KeptReply, RequestBounds, SavedResponseFields } from './dialect.ts';
import { responsesDescription } from './responses-description.ts';
import { FAILED, FAILING_EVENTS, INCOMPLETE, TERMINAL_EVENTS } from './responses-events.ts';
import { RESPONSES_TEXTS } from './responses-texts.ts';
import { endedAtLimit, type LimitMark, lastEventSaysLimit } from './usage/output-limit.ts';
import { servedTier, servedTools, withDetails } from './usage/reply-details.ts';
import { countOf, inclusiveUsage, objectOf, type UsageObject } from './usage/reported-counts.ts';

/**
 * The limit is reported in `incomplete_details.reason`. The parent key is needed, since the caller's metadata may
 * contain a reason as well.
 */
const LIMIT_MARK: LimitMark = {
  key: Buffer.from('"reason"'),
  value: Buffer.from('"max_output_tokens"'),
  probe: Buffer.from('x_outpu'),
  probeAt: 3,
  parent: Buffer.from('"incomplete_details"'),
  documentDepth: 2,
  eventDepth: 3,
};
const OPEN_BRACE = 0x7b;

const RESPONSES_UNPRICED: UnpricedRequests = {
  fields: OPENAI_FIELDS,
  // `namespace` and `tool_search` only say how functions are shown to the model; the client runs the others.
  freeToolTypes: ['namespace', 'tool_search', 'local_shell', 'apply_patch', 'computer', 'computer_use_preview'],
  freeToolPrefixes: [],
  // Codex lists the search in every request and seldom uses it, so listing it is no reason for a refusal.
  searchToolType: 'web_search',
  hasMaxToolCalls: true,
  reportedTools: ['web_search', 'web_search_preview', 'x_search'],
  reportsHourCache: false,
};

export const responses: Dialect = {
  api: 'responses',
  path: APIS.responses.path,
  envelope: 'openai',
  description: responsesDescription,
  outputLimitField: 'max_output_tokens',
  texts: RESPONSES_TEXTS,
  storedObjects: { fields: ['conversation', 'prompt'], addInput: true },
  inputField: 'input',
  charged: true,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds,
  readUsage,
  readDetails,
  isTruncated,
  watchStoredReply: () => new StoredReply(),
  watchStreamEnd: () => new EventStreamEnd(TERMINAL_EVENTS),
  failingEvents: FAILING_EVENTS,
  failedEvent: failedResponse,
};

function readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds | Refusal {
  const streamed = readFlag(scanned, 'stream');
  if (typeof streamed === 'object') return streamed;
  const outputTokensMax = readCount(scanned, body, 'max_output_tokens');
  if (typeof outputTokensMax === 'object' && outputTokensMax !== null) return outputTokensMax;
  return withNamedCosts(
    { streamed, outputTokensMax, answers: 1, saved: readSavedFields(scanned, body), ...readToolPrompt(scanned) },
    RESPONSES_UNPRICED,
    scanned,
    body,
  );
}

function readSavedFields(scanned: ScannedRequest, body: Buffer): SavedResponseFields {
  const store = scanned.valueOf('store')?.kind;
  return {
    background: scanned.valueOf('background')?.kind === 'true',
    store: store === 'true' ? true : store === 'false' ? false : null,
    previousResponseId: readText(scanned, body, 'previous_response_id'),
    conversationId: readText(scanned, body, 'conversation') ?? readConversationObject(scanned, body),
  };
}

const CONVERSATION_BYTES_MAX = 1024;

/** Reads the id from a `conversation` that is an object and not the id itself. */
function readConversationObject(scanned: ScannedRequest, body: Buffer): string | null {
  const value = scanned.valueOf('conversation');
  if (value === null || value.kind !== 'object' || value.end - value.start > CONVERSATION_BYTES_MAX) return null;
  const id = objectOf(JSON.parse(body.toString('utf8', value.start, value.end)))['id'];
  return typeof id === 'string' ? id : null;
}

function usageObject(reply: KeptReply): UsageObject | null {
  return isDocument(reply.beginning) ? documentUsage(reply) : lastEventUsage(reply, usageOfEvent);
}

function readUsage(reply: KeptReply): Usage | null {
  const usage = usageObject(reply);
  if (usage === null) return null;
  const input = objectOf(usage['input_tokens_details']);
  const counts = inclusiveUsage({
    input: countOf(usage['input_tokens']),
    // OpenAI's own names first, then Perplexity's.
    cached: countOf(input['cached_tokens'] ?? input['cache_read_input_tokens']),
    cacheWrite: countOf(input['cache_write_tokens'] ?? input['cache_creation_input_tokens']),
    output: countOf(usage['output_tokens']),
    reasoning: countOf(objectOf(usage['output_tokens_details'])['reasoning_tokens']),
    total: countOf(usage['total_tokens']),
  });
  return withDetails(counts, usage, reply);
}

function readDetails(reply: KeptReply, { maySearch }: RequestBounds): UsageDetails | null {
  const serviceTier = servedTier(reply, 2);
  const calls = servedTools(reply, maySearch === true, () => usageObject(reply));
  if (serviceTier === null && calls.length === 0) return null;
  return { ...(serviceTier === null ? {} : { serviceTier }), ...(calls.length === 0 ? {} : { calls }) };
}

/**
 * The usage of a terminal event, whose `response` contains it. Other events contain items with texts of tools and
 * callers.
 */
function usageOfEvent(event: EventLine): UsageObject | null {
  const usage = event.usageAt(2);
  if (usage === null || !('input_tokens' in usage || 'output_tokens' in usage)) return null;
  const { type } = event;
  return type === null || TERMINAL_EVENTS.names.includes(type) ? usage : null;
}

function isTruncated(reply: KeptReply, endedBy: string | null): boolean {
  if (isDocument(reply.beginning)) return endedAtLimit(reply, LIMIT_MARK);
  if (endedBy !== INCOMPLETE) return false;
  // The event repeats the whole answer after the reason. If even its short values are too long to be kept, the event's
  // name has to decide: answers of that length are rare with the only other reason, the content filter, and the rule
  // with this one.
  return lastEventSaysLimit(reply, LIMIT_MARK) || !beginsWithin(reply.end);
}

/** Whether the data of the stream's last event begins in these bytes. */
function beginsWithin(end: Buffer): boolean {
  const line = end.indexOf(DATA_LINE);
  return end.indexOf('data:') === 0 || (line !== -1 && end[skipSpace(end, line + DATA_LINE.length)] === OPEN_BRACE);
}

/** Codex repeats the request after most error codes, and pays each time. It takes this code for an answer. */
function failedResponse(refusal: string, beginning: Buffer): string {
  const { error, guardrail, request_id: requestId } = objectOf(JSON.parse(refusal));
  const response = {
    id: readResponseId(beginning) ?? requestId,
    object: 'response',
    status: 'failed',
    error: { code: 'invalid_prompt', message: objectOf(error)['message'] },
    output: [],
    guardrail,
  };
  const data = { type: FAILED, sequence_number: LAST_SEQUENCE_NUMBER, response };
  return `event: ${FAILED}\ndata: ${JSON.stringify(data)}\n\n`;
}

/** Greater than the provider's number of any earlier event. */
const LAST_SEQUENCE_NUMBER = 2_147_483_647;
