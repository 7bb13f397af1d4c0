// The image dialect: what a request for images may cost, as JSON or as a form, and what its reply used (spec 4.3, 8).

import { z } from 'zod';
import type { TextPlaces } from '../../domain/guardrails/text-places.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { NO_COUNTS, type Usage } from '../../domain/usage/usage.ts';
import { assert } from '../../platform/assert.ts';
import { type FormFault, readPartText, type ScannedForm } from '../request/multipart-scan.ts';
import { refuseLetterCase } from '../request/read-request.ts';
import { readFlag } from '../request/request-fields.ts';
import { readInteger, type ScannedRequest } from '../request/scan/request-scanner.ts';
import { FAILED_IMAGES, ImageDocumentTally, ImageStreamTally, type ImageTally } from '../sse/image-tally.ts';
import { documentUsage, isDocument, lastEventUsage } from '../sse/usage-window.ts';
import { answer, count, type DialectDescription, model, stream, text } from './description.ts';
import type { Dialect, KeptReply, ReadRequest, RequestBounds } from './dialect.ts';
import { withCost } from './usage/reply-details.ts';

const IMAGE_PATHS = { generations: '/v1/images/generations', edits: '/v1/images/edits' } as const;

export interface ImageBounds extends RequestBounds {
  /** Admission refuses a billed organization with this. For others the provider judges the request. */
  readonly refusalIfBilled: Refusal | null;
}

const IMAGE_TEXTS: TextPlaces = {
  request: 'request',
  reply: 'reply',
  event: 'image',
  shapes: {
    request: {
      members: {
        model: 'opaque',
        images: { shape: 'given' },
        image: { shape: 'given' },
        mask: { shape: 'given' },
        n: 'opaque',
        seed: 'opaque',
        size: 'fragile',
        quality: 'fragile',
        background: 'fragile',
        output_format: 'fragile',
        response_format: 'fragile',
        stream: 'opaque',
      },
    },
    given: { members: { image_url: { shape: 'given' }, url: 'url', file_id: 'opaque' }, string: 'url' },
    reply: { members: { data: { shape: 'image' }, usage: 'opaque' } },
    image: { members: { type: 'opaque', b64_json: 'opaque', url: 'fragile', usage: 'opaque' } },
  },
};

/** Spec 8: `n` is 1 to 10. */
const ANSWERS_BILLED_MAX = 10;

const FIELDS = {
  model,
  prompt: text.optional(),
  size: text.optional(),
  quality: text.optional(),
  n: count
    .min(1)
    .max(ANSWERS_BILLED_MAX)
    .optional()
    .meta({ description: `Images to make; above ${ANSWERS_BILLED_MAX} a billed request is 422.` }),
  stream,
};
const PRICED_EACH = 'Priced by image; the tokens of its usage are for analytics.';
const ANSWERS: Pick<DialectDescription, 'answer' | 'events'> = {
  answer: answer('Images', {
    created: count.optional(),
    data: z.array(z.looseObject({ b64_json: text.optional(), url: text.optional() })),
    usage: z
      .looseObject({
        input_tokens: count.optional(),
        output_tokens: count.optional(),
        total_tokens: count.optional(),
        input_tokens_details: z
          .looseObject({ text_tokens: count.optional(), image_tokens: count.optional() })
          .optional(),
      })
      .optional(),
  }),
  events: answer(
    'ImageEvent',
    { type: text, b64_json: text.optional() },
    'The data of one event: a partial image, or one that is whole.',
  ),
};

/** Generates images, from JSON. */
export const imageGenerations: Dialect = imageDialect(IMAGE_PATHS.generations, {
  id: 'generateImages',
  summary: 'Generates images.',
  details: PRICED_EACH,
  body: z.looseObject(FIELDS),
  ...ANSWERS,
});

/** Edits images: from a form, and for several clients from JSON with `images: [{image_url}]`. */
export const imageEdits: Dialect = {
  ...imageDialect(IMAGE_PATHS.edits, {
    id: 'editImages',
    summary: 'Edits images.',
    details: PRICED_EACH,
    body: z.looseObject({ ...FIELDS, images: z.array(z.looseObject({})).optional() }),
    form: z.looseObject({ ...FIELDS, 'image[]': z.unknown(), mask: z.unknown().optional() }),
    ...ANSWERS,
  }),
  form: { read: readImageForm, refuse: refuseImageForm },
};

function imageDialect(path: string, description: DialectDescription): Dialect {
  return {
    api: 'images',
    path,
    envelope: 'openai',
    description,
    outputLimitField: 'n',
    cheaper: 'ask for fewer images ("n")',
    texts: IMAGE_TEXTS,
    inputField: 'prompt',
    charged: true,
    unit: 'images',
    overheadTokens: 0,
    readBounds: readImageBounds,
    readUsage: (reply, watch, clientLeft) =>
      readImageUsage(reply, watch as ImageStreamTally | ImageDocumentTally, clientLeft === true),
    watchStreamEnd: () => new ImageStreamTally(1),
    failingEvents: [FAILED_IMAGES],
    // The provider decides how many images come, and each event is complete in itself.
    isWholeWithoutEnd: () => true,
    watchReply: (isStream, answers) => (isStream ? new ImageStreamTally(answers) : new ImageDocumentTally()),
  };
}

function readImageForm(form: ScannedForm, body: Buffer): ReadRequest | Refusal {
  const requestedModel = readImageFormModel(form, body);
  if (typeof requestedModel === 'object') return requestedModel;
  const modelAt = form.valueOf('model');
  assert(modelAt !== null, 'a form whose model was read has one');
  const bounds = readImageFormBounds(form, body);
  return 'kind' in bounds ? bounds : { requestedModel, modelAt, bounds };
}

const ANSWERS_REASON = `must be a whole number from 1 to ${ANSWERS_BILLED_MAX}, in digits alone`;
const WHOLE_NUMBER = /^[1-9][0-9]{0,14}$/;
/** Longer than any model id, so a longer name is not looked up. */
const MODEL_BYTES_MAX = 512;

export function readImageBounds(scanned: ScannedRequest, body: Buffer): ImageBounds | Refusal {
  const streamed = readFlag(scanned, 'stream');
  if (typeof streamed === 'object') return streamed;
  const value = scanned.valueOf('n');
  if (value === null || value.kind === 'null') return boundsOf(1, streamed);
  return boundsOf(readInteger(body, value), streamed);
}

export function readImageFormBounds(form: ScannedForm, body: Buffer): ImageBounds | Refusal {
  const stream = form.valueOf('stream');
  const streamText = stream === null ? 'false' : readPartText(body, stream, 8);
  if (streamText !== 'true' && streamText !== 'false')
    return { kind: 'invalid_field', field: 'stream', reason: 'must be true or false' };
  const n = form.valueOf('n');
  if (n === null) return boundsOf(1, streamText === 'true');
  const text = readPartText(body, n, 16) ?? '';
  return boundsOf(WHOLE_NUMBER.test(text) ? Number(text) : null, streamText === 'true');
}

/** The model that a form names. */
export function readImageFormModel(form: ScannedForm, body: Buffer): string | Refusal {
  const value = form.valueOf('model');
  if (value === null) return { kind: 'missing_model' };
  if (value.start === value.end) return { kind: 'missing_model', isEmpty: true };
  return (
    readPartText(body, value, MODEL_BYTES_MAX) ?? {
      kind: 'invalid_field',
      field: 'model',
      reason: `must be text of at most ${MODEL_BYTES_MAX} bytes`,
    }
  );
}

export function refuseImageForm({ fault, field, offset }: FormFault): Refusal {
  switch (fault) {
    case 'duplicate_part':
      return { kind: 'duplicate_key', key: field ?? '' };
    case 'letter_case':
      return refuseLetterCase(field ?? '');
    case 'not_a_plain_part':
      if (field === 'model') return { kind: 'model_not_a_string' };
      return { kind: 'invalid_field', field: field ?? '', reason: 'must be one plain text part of the form' };
    case 'missing_boundary':
      return { kind: 'invalid_form', reason: 'the Content-Type names no boundary of 1 to 70 characters' };
    case 'unfinished':
      return { kind: 'invalid_form', reason: 'it does not end with the closing boundary' };
    case 'too_many_parts':
      return { kind: 'invalid_form', reason: 'it has too many parts' };
    case 'headers_too_large':
      return { kind: 'invalid_form', reason: 'the headers of its parts are too long' };
    case 'malformed':
      return { kind: 'invalid_form', reason: `a part or boundary near byte ${offset} is not written as it must be` };
  }
}

/**
 * Images are billed one by one, so neither tokens nor attachments need a bound: the hold is `answers` times the price
 * of one image.
 */
function boundsOf(answers: number | null, streamed: boolean): ImageBounds | Refusal {
  if (answers === null || answers < 1) return { kind: 'invalid_field', field: 'n', reason: ANSWERS_REASON };
  const tooMany = answers > ANSWERS_BILLED_MAX;
  const refusalIfBilled: Refusal | null = tooMany
    ? {
        kind: 'not_safely_billable',
        field: 'n',
        reason: `At most ${ANSWERS_BILLED_MAX} images can be billed in one request.`,
        advice: `Set "n" to ${ANSWERS_BILLED_MAX} or less.`,
      }
    : null;
  return { streamed, outputTokensMax: 0, answers, refusalIfBilled };
}

/**
 * What a reply used. `tally` has its images. Tokens are known only if the provider reported them, and are for analytics
 * only.
 *
 * A reply that the provider broke off is charged for its complete images. A reply that the client broke off is also
 * charged for the images it had begun to receive: an image is made before its first byte is sent, and a partial image
 * can be almost finished.
 */
export function readImageUsage(reply: KeptReply, tally: ImageTally, clientLeft: boolean): Usage {
  const isWhole = isDocument(reply.beginning);
  const usage = isWhole ? documentUsage(reply) : lastEventUsage(reply, (event) => event.usageAt(1));
  const images = imagesOf(reply, tally, clientLeft);
  const counts = {
    ...NO_COUNTS,
    inputTokens: tokensOf(usage?.['input_tokens']),
    outputTokens: tokensOf(usage?.['output_tokens']),
    images,
  };
  // Each image of a stream has its own report, and only the last report is read.
  return isWhole || images === 1 ? withCost(counts, usage, reply) : counts;
}

/**
 * null: no image was found in a complete reply. It may contain some in another format, so it is free, with an alarm.
 */
function imagesOf({ cut }: KeptReply, tally: ImageTally, clientLeft: boolean): number | null {
  const images = clientLeft ? tally.begun : tally.finished;
  return images === 0 && !cut ? null : images;
}

/**
 * A token count; null if it is no valid count. Nothing is charged by it, so an invalid one must not invalidate the
 * report of the images.
 */
function tokensOf(count: unknown): number | null {
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 ? count : null;
}
