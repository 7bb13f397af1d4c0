// Owns the rows of refusal-rules.ts for uploaded files (spec 4.7).

import { SECOND_MS } from '../../platform/durations.ts';
import { RETRY_LATER, type RefusalRules } from './refusal-rule.ts';

type MediaKind =
  | 'media_not_available'
  | 'file_too_large'
  | 'media_quota_exceeded'
  | 'range_not_satisfiable'
  | 'media_storage_unavailable';

export const MEDIA_RULES: RefusalRules<MediaKind> = {
  media_not_available: {
    status: 404,
    family: 'request',
    retryable: false,
    summary: 'This service keeps no uploaded files.',
    advice: 'Send the content in the request itself, as far as the model takes it.',
  },
  file_too_large: {
    status: 413,
    family: 'request',
    retryable: false,
    summary: ({ limitBytes }) => `The file is larger than the limit of ${limitBytes} bytes.`,
    advice: 'Upload a smaller file.',
  },
  media_quota_exceeded: {
    status: 413,
    family: 'request',
    retryable: false,
    summary: ({ limitBytes }) =>
      `The files of your organization would exceed the limit of ${limitBytes} bytes together.`,
    advice: 'Ask an administrator of the organization to delete files that are no longer needed.',
  },
  range_not_satisfiable: {
    status: 416,
    family: 'request',
    retryable: false,
    summary: ({ bytes }) => `The Range header asks for no part of this file of ${bytes} bytes.`,
    advice: 'Ask for bytes that the file has, such as "bytes=0-".',
  },
  media_storage_unavailable: {
    status: 503,
    family: 'service',
    retryable: true,
    retryAfterMs: 5 * SECOND_MS,
    summary: 'The storage of uploaded files cannot be reached, or has no room.',
    advice: RETRY_LATER,
  },
};
