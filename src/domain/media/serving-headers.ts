// The headers with which the bytes of an uploaded file are served, so that no browser runs scripts in it.

import type { MediaObject } from './media-object.ts';

/** Types that a browser may show inline. Everything else is a download: SVG, HTML and PDF can carry scripts. */
const INLINE: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/avif',
  'video/mp4',
  'video/webm',
  'audio/mpeg',
  'audio/wav',
  'audio/ogg',
]);

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/png': 'png',
  'image/jpeg': 'jpg',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/svg+xml': 'svg',
  'video/mp4': 'mp4',
  'video/webm': 'webm',
  'video/quicktime': 'mov',
  'audio/mp4': 'm4a',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/ogg': 'ogg',
  'audio/flac': 'flac',
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'application/xml': 'xml',
  'text/html': 'html',
  'text/plain': 'txt',
};

/** The readers of the bytes: holders of a key of the organization, or everybody who has the address. */
export type MediaAudience = 'organization' | 'everybody';

/** A shared cache may serve a deleted file for at most this long. The bytes under an id never change. */
const CACHE_CONTROL: Readonly<Record<MediaAudience, string>> = {
  organization: 'private, max-age=86400, immutable',
  everybody: 'public, max-age=300, immutable',
};

/** The bytes under an id never change, so the id is the version. */
export function etagOf({ id }: Pick<MediaObject, 'id'>): string {
  return `"${id}"`;
}

export function dispositionOf({ id, contentType }: Pick<MediaObject, 'id' | 'contentType'>): string {
  const name = `${id}.${EXTENSIONS[contentType] ?? 'bin'}`;
  return `${INLINE.has(contentType) ? 'inline' : 'attachment'}; filename="${name}"`;
}

/** Names and values, alternating. */
export function servingHeaders(object: MediaObject, audience: MediaAudience): readonly string[] {
  const { contentType } = object;
  return [
    'content-type',
    contentType === 'text/plain' ? 'text/plain; charset=utf-8' : contentType,
    'content-disposition',
    dispositionOf(object),
    'x-content-type-options',
    'nosniff',
    'content-security-policy',
    "default-src 'none'; sandbox",
    'cross-origin-resource-policy',
    audience === 'everybody' ? 'cross-origin' : 'same-origin',
    'accept-ranges',
    'bytes',
    ...versionHeaders(object, audience),
  ];
}

/**
 * The headers that go also to a client that already has the bytes. `vary` makes a cache that several credentials share,
 * as in a server with clients of its own, keep one answer per credential.
 */
export function versionHeaders(object: MediaObject, audience: MediaAudience): readonly string[] {
  const vary = audience === 'organization' ? ['vary', 'authorization, x-api-key'] : [];
  return ['cache-control', CACHE_CONTROL[audience], ...vary, 'etag', etagOf(object)];
}
