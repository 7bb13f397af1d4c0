// Descriptions of the routes of uploaded files (spec 4.7, 2.2), whose handlers stream.

import { z } from 'zod';
import { FILE_FIELD } from '../media/receive-file.ts';
import type { OperationDescription } from '../operation.ts';

const id = z.uuid().meta({ description: 'The id of the file here, not at a provider.' });
const url = z.url().meta({ description: 'To be used as it is.' });
const bytes = z.int().min(0);

const uploaded = z
  .object({
    id,
    mime: z.string().meta({ description: 'The type that the bytes show, whatever type was declared.' }),
    bytes,
    deduped: z.boolean().meta({ description: 'The organization had these bytes already, under this id.' }),
    url,
  })
  .meta({ id: 'UploadedMedia' });

const metadata = z.object({ id, url, content_type: z.string(), size: bytes }).meta({ id: 'MediaMetadata' });

const OF_MEDIA = { query: null, body: null, status: 200, isOfMedia: true } as const;
const RANGE_HEADERS = {
  Range: z
    .string()
    .optional()
    .meta({ description: 'One range of bytes. For several ranges, the whole file is the answer.' }),
  'If-Range': z.string().optional(),
  'If-None-Match': z.string().optional(),
};

/** Headers of a file's bytes; absent where the answer is a JSON object. */
const BYTES_HEADERS = {
  ETag: z.string().optional(),
  'Accept-Ranges': z.literal('bytes').optional(),
  'Content-Disposition': z
    .string()
    .optional()
    .meta({ description: 'A file that a browser could run is an attachment.' }),
  'Content-Security-Policy': z.string().optional(),
  'Cross-Origin-Resource-Policy': z.string().optional(),
  'X-Content-Type-Options': z.literal('nosniff').optional(),
  'Cache-Control': z.string().optional(),
};

/** `alias`: under `/v1/files`, where clients of OpenAI's Files API upload. */
export function describeUpload(alias: boolean): OperationDescription {
  return {
    ...OF_MEDIA,
    id: alias ? 'uploadFile' : 'uploadMedia',
    summary: alias ? 'Uploads a file; the same as uploadMedia.' : 'Uploads a file for the caller’s organization.',
    details: `The file is the part \`${FILE_FIELD}\` of the form; other fields are ignored.`,
    form: z.looseObject({ [FILE_FIELD]: z.string().meta({ format: 'binary' }) }),
    answer: uploaded,
  };
}

export function describeMedia(alias: boolean): OperationDescription {
  return {
    ...OF_MEDIA,
    id: alias ? 'getFile' : 'getMedia',
    summary: alias ? 'Answers a file; the same as getMedia.' : 'Answers the bytes of an uploaded file.',
    headers: RANGE_HEADERS,
    answer: z.object({ url }).meta({
      id: 'MediaAddress',
      description: 'The answer of an installation that gives addresses instead of bytes.',
    }),
    isBytes: true,
    answerHeaders: BYTES_HEADERS,
  };
}

export function describeMediaMetadata(alias: boolean): OperationDescription {
  return {
    ...OF_MEDIA,
    id: alias ? 'getFileMetadata' : 'getMediaMetadata',
    summary: alias
      ? 'Shows what is known of a file; the same as getMediaMetadata.'
      : 'Shows what is known of an uploaded file.',
    answer: metadata,
  };
}

export const GET_PUBLIC_MEDIA: OperationDescription = {
  ...OF_MEDIA,
  id: 'getPublicMedia',
  summary: 'Answers the bytes of an uploaded file to anybody who has its public address.',
  headers: RANGE_HEADERS,
  answer: null,
  isBytes: true,
  answerHeaders: BYTES_HEADERS,
};
