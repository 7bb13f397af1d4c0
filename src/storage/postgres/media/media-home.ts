// Where the objects of this installation lie: registered by the first process that keeps files, so that a second
// machine does not look for them on a disk of its own.

import type { PostgresClient } from '../pool.ts';

export interface MediaHome {
  readonly kind: 'disk' | 's3';
  /** The mark in the directory, or the address of the bucket. */
  readonly place: string;
}

/** The home that is registered now: this one, unless there was another before. */
export async function registerMediaHome(postgres: PostgresClient, { kind, place }: MediaHome): Promise<MediaHome> {
  await postgres.query('INSERT INTO media_home (kind, place) VALUES ($1, $2) ON CONFLICT DO NOTHING', [kind, place]);
  const { rows } = await postgres.query<MediaHome>('SELECT kind, place FROM media_home');
  return rows[0] ?? { kind, place };
}

/** From now on the objects lie here: the operator has moved them. */
export async function moveMediaHome(postgres: PostgresClient, { kind, place }: MediaHome): Promise<void> {
  await postgres.query(
    `INSERT INTO media_home (kind, place) VALUES ($1, $2)
     ON CONFLICT (is_only) DO UPDATE SET kind = excluded.kind, place = excluded.place, registered_at = now()`,
    [kind, place],
  );
}
