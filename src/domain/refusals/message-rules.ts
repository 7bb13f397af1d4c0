// Owns the rows of refusal-rules.ts for what is wrong with the HTTP message, whatever it asks for.

import { SECOND_MS } from '../../platform/durations.ts';
import { quoteShort } from './quote-short.ts';
import type { RefusalRules } from './refusal-rule.ts';

type MessageKind =
  | 'length_required'
  | 'transfer_encoding_refused'
  | 'invalid_target'
  | 'repeated_header'
  | 'unsendable_header'
  | 'body_too_large'
  | 'request_timeout'
  | 'unsupported_media_type';

export const MESSAGE_RULES: RefusalRules<MessageKind> = {
  length_required: {
    status: 411,
    family: 'request',
    retryable: false,
    closesConnection: true,
    summary: 'The request has no Content-Length header, or not a whole number in it.',
    advice: 'Send the body with its length, or in chunks (Transfer-Encoding: chunked).',
  },
  transfer_encoding_refused: {
    status: 411,
    family: 'request',
    retryable: false,
    closesConnection: true,
    summary: 'The Transfer-Encoding of the request is not "chunked", or stands beside a Content-Length.',
    advice: 'Send either a Content-Length, or Transfer-Encoding: chunked, and no other coding.',
  },
  invalid_target: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: 'The address of the request holds bytes that are no visible ASCII characters.',
    advice: 'Percent-encode them.',
  },
  repeated_header: {
    status: 400,
    family: 'request',
    retryable: false,
    closesConnection: true,
    summary: ({ name }) => `The header ${quoteShort(name)} appears more than once.`,
    advice: 'Send it once.',
  },
  unsendable_header: {
    status: 400,
    family: 'request',
    retryable: false,
    summary: ({ name }) => `The header ${quoteShort(name)} holds bytes that cannot be sent on to a provider.`,
    advice: 'Send its value as UTF-8 without control characters, or leave it out.',
  },
  body_too_large: {
    status: 413,
    family: 'request',
    retryable: false,
    closesConnection: true,
    summary: ({ limitBytes }) => `The request body is larger than the limit of ${limitBytes} bytes.`,
    advice: 'Send a smaller body.',
  },
  request_timeout: {
    status: 408,
    family: 'request',
    retryable: true,
    retryAfterMs: SECOND_MS,
    closesConnection: true,
    summary: 'The request body did not arrive in time.',
    advice: 'Send the request again over a connection that can carry it.',
  },
  unsupported_media_type: {
    status: 415,
    family: 'request',
    retryable: false,
    summary: ({ expected = 'application/json', isEncoded }) =>
      isEncoded === true
        ? 'The body of the request has a Content-Encoding.'
        : `The Content-Type of the request is not ${expected}.`,
    advice: ({ expected = 'application/json' }) => `Send the body as ${expected}, without a Content-Encoding.`,
  },
};
