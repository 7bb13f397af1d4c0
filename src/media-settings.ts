// The settings about uploaded files (MEDIA and those that begin with it), as one value.

import type { MediaLimits } from './domain/media/media-object.ts';
import type { BucketConfig } from './domain/media/object-store.ts';

export interface MediaConfig {
  /** `disk`: a directory below `dataDirectory`. */
  readonly storage: 'disk' | BucketConfig;
  /** What GET answers with: the bytes, or an address from which whoever has it reads them. */
  readonly retrieval: 'bytes' | 'url';
  /** Where everybody reads files whose address they have, without a trailing slash; null: nowhere. */
  readonly publicUrl: string | null;
  readonly limits: MediaLimits;
  /** Files that nobody has uploaded for so long are deleted; null: never. */
  readonly retentionDays: number | null;
}

export interface MediaSettings {
  readonly DATABASE_URL?: string | undefined;
  readonly MEDIA?: 'off' | 'disk' | 's3' | undefined;
  readonly MEDIA_BUCKET_URL?: string | undefined;
  readonly MEDIA_BUCKET_REGION?: string | undefined;
  readonly MEDIA_BUCKET_KEY_ID?: string | undefined;
  readonly MEDIA_BUCKET_SECRET?: string | undefined;
  readonly MEDIA_RETRIEVAL?: 'bytes' | 'url' | undefined;
  readonly MEDIA_PUBLIC_URL?: string | undefined;
  readonly MEDIA_FILE_BYTES_MAX?: number | undefined;
  readonly MEDIA_ORGANIZATION_BYTES_MAX?: number | undefined;
  readonly MEDIA_RETENTION_DAYS?: number | undefined;
}

const FILE_BYTES_MAX = 26_214_400;
const ORGANIZATION_BYTES_MAX = 10_737_418_240;

/**
 * An installation with its own database is one machine, whose disk is a place for files. With a database elsewhere
 * there may be several machines, so there somebody must have said where files are to lie.
 */
export function mediaConfigOf(settings: MediaSettings): MediaConfig | null {
  const kind = settings.MEDIA ?? (settings.DATABASE_URL === undefined ? 'disk' : 'off');
  if (kind === 'off') return null;
  return {
    storage: kind === 'disk' ? kind : bucketOf(settings),
    retrieval: settings.MEDIA_RETRIEVAL ?? 'bytes',
    publicUrl: settings.MEDIA_PUBLIC_URL?.replace(/\/+$/, '') ?? null,
    retentionDays: settings.MEDIA_RETENTION_DAYS ?? null,
    limits: {
      fileBytesMax: settings.MEDIA_FILE_BYTES_MAX ?? FILE_BYTES_MAX,
      organizationBytesMax: settings.MEDIA_ORGANIZATION_BYTES_MAX ?? ORGANIZATION_BYTES_MAX,
    },
  };
}

function bucketOf(settings: MediaSettings): BucketConfig {
  return {
    url: settings.MEDIA_BUCKET_URL?.replace(/\/+$/, '') ?? '',
    region: settings.MEDIA_BUCKET_REGION ?? 'us-east-1',
    keyId: settings.MEDIA_BUCKET_KEY_ID ?? '',
    secret: settings.MEDIA_BUCKET_SECRET ?? '',
  };
}

/** What settings that are each right say against each other, one line each. */
export function mediaProblems(settings: MediaSettings): readonly string[] {
  const lines: string[] = [];
  const config = mediaConfigOf({ ...settings, MEDIA: 'disk' });
  const { fileBytesMax = 0, organizationBytesMax = 0 } = config?.limits ?? {};
  if (fileBytesMax > organizationBytesMax) {
    const most = `must be at most MEDIA_ORGANIZATION_BYTES_MAX, ${organizationBytesMax}`;
    lines.push(`MEDIA_FILE_BYTES_MAX: ${most}, got "${fileBytesMax}"`);
  }
  if (settings.MEDIA === 's3') {
    for (const name of ['MEDIA_BUCKET_URL', 'MEDIA_BUCKET_KEY_ID', 'MEDIA_BUCKET_SECRET'] as const)
      if (settings[name] === undefined) lines.push(`${name}: must be given when MEDIA is s3`);
    if (settings.MEDIA_BUCKET_URL !== undefined && new URL(settings.MEDIA_BUCKET_URL).pathname === '/')
      lines.push('MEDIA_BUCKET_URL: must have the bucket as its path, such as https://s3.example/bucket');
  }
  if (settings.MEDIA_RETRIEVAL === 'url' && settings.MEDIA !== 's3' && settings.MEDIA_PUBLIC_URL === undefined)
    lines.push('MEDIA_RETRIEVAL: url needs MEDIA=s3 or a MEDIA_PUBLIC_URL: files on the disk have no other address');
  return lines;
}
