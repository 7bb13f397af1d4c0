// The embeddings dialect: it has no stream and is priced by its input alone, since a vector has no output tokens (spec
// 4.12).

import { z } from 'zod';
import type { TextPlaces } from '../../domain/guardrails/text-places.ts';
import { APIS } from '../../domain/models/apis.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { NO_COUNTS, type Usage } from '../../domain/usage/usage.ts';
import { skipSpace } from '../../platform/bytes/json-bytes.ts';
import type { ScannedRequest } from '../request/scan/request-scanner.ts';
import { OPENAI_FIELDS, type UnpricedRequests, withNamedCosts } from '../request/unpriced-fields.ts';
import { NO_STREAM } from '../sse/stream-end.ts';
import { documentUsage } from '../sse/usage-window.ts';
import { answer, count, type DialectDescription, model, text } from './description.ts';
import type { Dialect, KeptReply, RequestBounds } from './dialect.ts';
import { withDetails } from './usage/reply-details.ts';
import { countOf } from './usage/reported-counts.ts';

const EMBEDDINGS_UNPRICED: UnpricedRequests = {
  fields: OPENAI_FIELDS,
  freeToolTypes: [],
  freeToolPrefixes: [],
  searchToolType: null,
  hasMaxToolCalls: false,
  reportedTools: [],
  reportsHourCache: false,
};

const EMBEDDINGS_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'reply',
  shapes: {
    request: { members: { model: 'opaque', input: 'text_or_tokens', encoding_format: 'fragile' } },
    // A provider's error has one of these members.
    reply: { members: { error: 'text', message: 'text', detail: 'text' }, otherwise: 'opaque', names: 'echo' },
  },
};

const EMBEDDINGS_DESCRIPTION: DialectDescription = {
  id: 'createEmbeddings',
  summary: 'Makes vectors of texts.',
  body: z.looseObject({
    model,
    input: z.union([z.string(), z.array(z.string()), z.array(z.int()), z.array(z.array(z.int()))]),
    encoding_format: z.enum(['float', 'base64']).optional(),
    dimensions: z.int().optional(),
    user: z.string().optional(),
  }),
  answer: answer('EmbeddingList', {
    object: text.optional(),
    data: z.array(
      z.looseObject({
        index: count.optional(),
        embedding: z
          .union([z.array(z.number()), text])
          .meta({ description: 'Floats, or base64 where that was asked for.' }),
      }),
    ),
    model: text.optional(),
    usage: z.looseObject({ prompt_tokens: count.optional(), total_tokens: count.optional() }).optional(),
  }),
};

export const embeddings: Dialect = {
  api: 'embeddings',
  path: APIS.embeddings.path,
  envelope: 'openai',
  description: EMBEDDINGS_DESCRIPTION,
  outputLimitField: 'input',
  cheaper: 'send less "input"',
  texts: EMBEDDINGS_TEXTS,
  inputField: 'input',
  charged: true,
  unit: 'tokens',
  overheadTokens: 0,
  readBounds,
  readUsage,
  watchStreamEnd: () => NO_STREAM,
  isWholeWithoutEnd: () => true,
};

/** The body bounds the cost of texts and tokens. Nothing bounds input by reference, which some providers accept. */
const REFERENCES_UNBOUNDED: Refusal = {
  kind: 'not_safely_billable',
  field: 'input',
  reason: 'The cost of input by reference has no upper bound.',
  advice: 'Send texts or tokens.',
};

function readBounds(scanned: ScannedRequest, body: Buffer): RequestBounds {
  const refusalIfBilled = scanned.attachments > 0 ? REFERENCES_UNBOUNDED : null;
  const isReadInParts = !isOneText(scanned, body);
  const bounds = { streamed: false, outputTokensMax: 0, answers: 1, refusalIfBilled, isReadInParts };
  return withNamedCosts(bounds, EMBEDDINGS_UNPRICED, scanned, body);
}

/** Whether the input is one text, or a list of the tokens of one. */
function isOneText(scanned: ScannedRequest, body: Buffer): boolean {
  const input = scanned.valueOf('input');
  if (input?.kind !== 'array') return input?.kind === 'string';
  const first = body[skipSpace(body, input.start + 1)] ?? 0;
  return first >= DIGIT_0 && first <= DIGIT_9;
}

const DIGIT_0 = 0x30;
const DIGIT_9 = 0x39;

/** Some providers report only the total, which without output is the input. */
function readUsage(reply: KeptReply): Usage | null {
  const usage = documentUsage(reply);
  if (usage === null) return null;
  const counts = {
    ...NO_COUNTS,
    inputTokens: countOf(usage['prompt_tokens'] ?? usage['total_tokens']),
    outputTokens: 0,
  };
  return withDetails(counts, usage, reply);
}
