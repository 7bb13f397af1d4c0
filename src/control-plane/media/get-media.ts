// Answers what an organization's own credentials ask of its uploaded files: their bytes and what is known of them (spec
// 4.7).

import type { MediaObject } from '../../domain/media/media-object.ts';
import { refuseUnknownParameter } from '../../domain/refusals/read-query.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import type { Exchange } from '../../http/exchange.ts';
import type { Authorize } from '../operation.ts';
import type { Media } from './media-parts.ts';
import { serveBytes } from './serve-media.ts';

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

type Serve = (media: Media | null, exchange: Exchange, authorize: Authorize) => Promise<void>;

export const getMedia: Serve = async (media, exchange, authorize) => {
  const found = await findOwn(media, exchange, authorize);
  if ('kind' in found) return exchange.refuse(found);
  if (found.media.retrieval === 'url') return answerAddress(found.media, exchange, found.object);
  await serveBytes(found.media, exchange, found.object, 'organization');
};

/** A public address works as long as the file exists, a presigned address of the bucket for a quarter of an hour. */
async function answerAddress(media: Media, exchange: Exchange, object: MediaObject): Promise<void> {
  const url = media.addresses?.of(object.id) ?? (await media.objects.presign?.(object)) ?? media.urlOf(object);
  exchange.answerJson(200, JSON.stringify({ url }));
}

/** Serves a file to everybody who has its address, which has a signature that nobody can guess. */
export async function getPublicMedia(media: Media | null, exchange: Exchange): Promise<void> {
  const [id = '', signature = ''] = exchange.parameters;
  if (media === null) return exchange.refuse({ kind: 'media_not_available' });
  const isSigned = media.addresses?.isSigned(id, signature) === true;
  const object = isSigned && ID.test(id) ? await media.store.findPublic(id) : null;
  if (object === null) return exchange.refuse({ kind: 'not_found' });
  await serveBytes(media, exchange, object, 'everybody');
}

export const getMediaMetadata: Serve = async (media, exchange, authorize) => {
  const found = await findOwn(media, exchange, authorize);
  if ('kind' in found) return exchange.refuse(found);
  const { object } = found;
  const shown = {
    id: object.id,
    url: found.media.urlOf(object),
    content_type: object.contentType,
    size: object.bytes,
  };
  exchange.answerJson(200, JSON.stringify(shown));
};

/** Another organization's file is not found, like a file that does not exist. */
async function findOwn(
  media: Media | null,
  exchange: Exchange,
  authorize: Authorize,
): Promise<{ readonly media: Media; readonly object: MediaObject } | Refusal> {
  const principal = await authorize();
  if ('kind' in principal) return principal;
  const unknown = refuseUnknownParameter(null, exchange.query);
  if (unknown !== null) return unknown;
  if (media === null) return { kind: 'media_not_available' };
  const object = await find(media, exchange.parameter ?? '', principal.organizationId);
  return object === null ? { kind: 'not_found' } : { media, object };
}

/** A text that is no id is not found, without asking Postgres. */
async function find({ store }: Media, id: string, organizationId: string | null): Promise<MediaObject | null> {
  const lowerCase = id.toLowerCase();
  return organizationId === null || !ID.test(lowerCase) ? null : store.find(lowerCase, organizationId);
}
