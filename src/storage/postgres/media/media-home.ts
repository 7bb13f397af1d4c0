// Records where the installation keeps uploaded files. The first process that keeps files registers the place, so that
// a second machine does not use a disk of its own.

import type { PostgresClient } from '../pool.ts';

export interface MediaHome {
  readonly kind: 'disk' | 's3';
  /** The mark in the directory, or the address of the bucket. */
  readonly place: string;
}

/** Registers the home if none is registered. Returns the registered home, which may be another one. */
export async function registerMediaHome(postgres: PostgresClient, { kind, place }: MediaHome): Promise<MediaHome> {
  await postgres.query('INSERT INTO media_home (kind, place) VALUES ($1, $2) ON CONFLICT DO NOTHING', [kind, place]);
  const { rows } = await postgres.query<MediaHome>('SELECT kind, place FROM media_home');
  return rows[0] ?? { kind, place };
}

/** Registers a new home, after the operator has moved the files there. */
export async function moveMediaHome(postgres: PostgresClient, { kind, place }: MediaHome): Promise<void> {
  await postgres.query(
    `INSERT INTO media_home (kind, place) VALUES ($1, $2)
     ON CONFLICT (is_only) DO UPDATE SET kind = excluded.kind, place = excluded.place, registered_at = now()`,
    [kind, place],
  );
}
