// Serves an upload (spec 4.7): reserves a part of the organization's quota, receives the file, and keeps the file with
// its row, or nothing of it. A file that the organization has already needs no room; its hash shows that at its end.

import { randomUUID } from 'node:crypto';
import type { Principal } from '../../domain/identity/principal.ts';
import type { Refusal } from '../../domain/refusals/refusal.ts';
import { FORM_ALONE, readBodyType } from '../../http/body-type.ts';
import type { Exchange } from '../../http/exchange.ts';
import { assert } from '../../platform/assert.ts';
import type { Authorize } from '../operation.ts';
import { inStorage, type KeptUpload, type Media, StorageFailed, type Upload } from './media-parts.ts';
import { receiveFile } from './receive-file.ts';
import { UploadBody } from './upload-body.ts';

/** How many bytes a form may have around its file. */
const FORM_BYTES_MAX = 262_144;

type Outcome = KeptUpload | Refusal | 'left';

/** `media` null: the installation keeps no files. */
export async function uploadMedia(media: Media | null, exchange: Exchange, authorize: Authorize): Promise<void> {
  const body = new UploadBody(exchange, media === null ? 0 : bodyBytesMax(media));
  const principal = await authorize();
  if ('kind' in principal) return exchange.refuse(principal);
  if (media === null) return exchange.refuse({ kind: 'media_not_available' });
  const refusal = refuseHead(exchange, media);
  if (refusal !== null) return exchange.refuse(refusal);
  const upload = uploadOf(principal);
  const work = (): Promise<Outcome> => serve(media, exchange, body, upload);
  answer(media, exchange, await media.uploads.run(work, OVERLOADED, upload.organizationId));
}

const OVERLOADED: Refusal = { kind: 'overloaded' };

function uploadOf({ organizationId, apiKeyId }: Principal): Upload {
  assert(organizationId !== null, 'the route table lets nobody without an active organization here');
  return { id: randomUUID(), organizationId, apiKeyId };
}

function refuseHead(exchange: Exchange, media: Media): Refusal | null {
  const { limits } = media;
  const { contentLength } = exchange;
  const type = readBodyType(exchange, FORM_ALONE);
  if (typeof type === 'object') return type;
  if (exchange.header('content-length') !== null && contentLength === -1) return { kind: 'length_required' };
  return contentLength > bodyBytesMax(media) ? { kind: 'file_too_large', limitBytes: limits.fileBytesMax } : null;
}

function bodyBytesMax({ limits }: Pick<Media, 'limits'>): number {
  return limits.fileBytesMax + FORM_BYTES_MAX;
}

function answer(media: Media, exchange: Exchange, outcome: Outcome): void {
  const { metrics } = media;
  if (outcome === 'left') return metrics.uploadEnded('left');
  if ('kind' in outcome) {
    metrics.uploadEnded(outcome.kind === 'media_storage_unavailable' ? 'failed' : 'refused');
    return exchange.refuse(outcome);
  }
  const { object, isDeduped } = outcome;
  metrics.uploadEnded(isDeduped ? 'deduped' : 'kept');
  const shown = {
    id: object.id,
    mime: object.contentType,
    bytes: object.bytes,
    deduped: isDeduped,
    url: media.urlOf(object),
  };
  exchange.answerJson(200, JSON.stringify(shown));
}

async function serve(media: Media, exchange: Exchange, body: UploadBody, upload: Upload): Promise<Outcome> {
  await body.lookForClient(media.slices);
  if (body.hasLeft) return 'left';
  const { store, limits } = media;
  if (body.isTooLong) return { kind: 'file_too_large', limitBytes: limits.fileBytesMax };
  const asked =
    exchange.contentLength > 0 ? Math.min(exchange.contentLength, limits.fileBytesMax) : limits.fileBytesMax;
  const granted = await store.reserve(upload, asked);
  let isKept = false;
  try {
    const outcome = await receiveAndKeep(media, exchange, body, upload, granted);
    isKept = outcome !== 'left' && 'object' in outcome;
    return outcome;
  } catch (fault) {
    if (!(fault instanceof StorageFailed)) throw fault;
    media.log.error({ err: fault.cause, media_id: upload.id }, 'a file could not be kept');
    return { kind: 'media_storage_unavailable' };
  } finally {
    // The reservation of a kept file has ended with the writing of its row.
    if (!isKept) await store.release(upload);
  }
}

async function receiveAndKeep(
  media: Media,
  exchange: Exchange,
  body: UploadBody,
  upload: Upload,
  granted: number | null,
): Promise<Outcome> {
  const { store, objects, metrics, limits } = media;
  const room = { bytesMax: limits.fileBytesMax, writtenBytesMax: granted ?? 0 };
  const staged = await inStorage(objects.stage(upload.id));
  try {
    const file = await receiveFile({ body, contentType: exchange.contentType, staged, room, slices: media.slices });
    if (file === 'left' || 'kind' in file) return file;
    metrics.receivedBytes.increment(file.bytes);
    const hasRoom = granted !== null && file.bytes <= granted;
    if (hasRoom) await inStorage(staged.finish());
    const duplicate = await store.finishDuplicate(upload, file);
    if (duplicate !== null) return duplicate;
    if (!hasRoom) return { kind: 'media_quota_exceeded', limitBytes: limits.organizationBytesMax };
    await inStorage(objects.keep(staged, file));
    const kept = await store.finish(upload, file);
    // Somebody else uploaded the same bytes meanwhile. If this copy cannot be removed now, the sweep removes it.
    if (kept?.isDeduped === true) await objects.remove(upload.id).catch(() => undefined);
    return kept ?? { kind: 'request_timeout' };
  } finally {
    await staged.discard();
  }
}
