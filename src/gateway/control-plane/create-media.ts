// Puts together what the routes of uploaded files need, where the installation keeps files.

import type { CompleteConfig } from '../../config.ts';
import { DownloadPlaces } from '../../control-plane/media/download-places.ts';
import { MediaMetrics } from '../../control-plane/media/media-metrics.ts';
import { type Media, type MediaStore, UPLOADS_AT_ONCE } from '../../control-plane/media/media-parts.ts';
import type { MediaLimits } from '../../domain/media/media-object.ts';
import { SignedAddresses } from '../../domain/media/signed-address.ts';
import { systemClock } from '../../platform/clock.ts';
import { TimeSlices } from '../../platform/event-loop/time-slices.ts';
import { FairQueue } from '../../platform/fair-queue.ts';
import type { Log } from '../../platform/log.ts';
import type { MetricsRegistry } from '../../platform/metrics.ts';
import { openObjects } from '../../storage/media/open-objects.ts';
import { findMediaObject, findPublicMediaObject } from '../../storage/postgres/media/media-objects.ts';
import { finishDuplicate, finishUpload, releaseMedia, reserveMedia } from '../../storage/postgres/media/uploads.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';
import { ServedBytes } from './served-bytes.ts';

/** How much longer a reservation lives than the longest upload, for what is then done with its file. */
const KEEPING_MS = 900_000;

export interface HeldMedia extends Media {
  /** Writes what was counted since the last time to Postgres. */
  flush(): Promise<void>;
}

interface Parts {
  readonly config: Pick<CompleteConfig, 'media' | 'publicUrl' | 'bodyTimeoutSeconds' | 'dataDirectory'>;
  readonly log: Log;
  readonly metrics: MetricsRegistry;
  readonly postgres: Postgres;
  /** A secret of the installation. */
  readonly pepper: Buffer;
}

/** null: the installation keeps no files. */
export async function createMedia({ config, log, metrics, postgres, pepper }: Parts): Promise<HeldMedia | null> {
  const { media, publicUrl } = config;
  if (media === null) return null;
  const served = new ServedBytes(postgres);
  const addresses = media.publicUrl === null ? null : new SignedAddresses(pepper, media.publicUrl);
  const held: HeldMedia = {
    store: storeOf(postgres, media.limits, config.bodyTimeoutSeconds * 1000 + KEEPING_MS),
    objects: await openObjects({ postgres, storage: media.storage, dataDirectory: config.dataDirectory, log }),
    limits: media.limits,
    uploads: new FairQueue(UPLOADS_AT_ONCE),
    slices: new TimeSlices(systemClock),
    downloads: new DownloadPlaces(),
    metrics: new MediaMetrics(metrics),
    addresses,
    retrieval: media.retrieval,
    urlOf: ({ id }) => addresses?.of(id) ?? `${publicUrl}/v1/media/${id}`,
    countServed: (organizationId, bytes) => served.count(organizationId, bytes),
    log,
    flush: () => served.flush(),
  };
  metrics.gauge('tollgate_media_downloads_open', 'Downloads of uploaded files under way', {
    read: () => held.downloads.underWay,
  });
  return held;
}

function storeOf(postgres: Postgres, { organizationBytesMax }: MediaLimits, lifetimeMs: number): MediaStore {
  return {
    reserve: (upload, bytes) => reserveMedia(postgres, { ...upload, bytes, organizationBytesMax, lifetimeMs }),
    release: ({ id }) => releaseMedia(postgres, id),
    finishDuplicate: (upload, file) => finishDuplicate(postgres, { ...upload, file }),
    finish: (upload, file) => finishUpload(postgres, { ...upload, file }),
    find: (id, organizationId) => findMediaObject(postgres, id, organizationId),
    findPublic: (id) => findPublicMediaObject(postgres, id),
  };
}
