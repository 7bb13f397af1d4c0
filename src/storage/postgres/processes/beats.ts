// Stores the beats of processes, one row for each process every five seconds, and adds up what all processes counted.

import { type BeatCounts, type ProcessState, SHOWN_MS } from '../../../domain/processes/live-figures.ts';
import { BEAT_INTERVAL_MS, type ProcessSample } from '../../../domain/processes/process-sample.ts';
import type { PostgresClient } from '../pool.ts';

export interface BeatingProcess {
  readonly machine: string;
  readonly kind: 'gateway' | 'jobs';
  readonly pid: number;
  readonly startedAtMs: number;
  readonly version: string;
  /** null: the process has no epoch, because it writes no records. */
  readonly epoch: number | null;
}

interface Beat extends ProcessSample {
  readonly atMs: number;
  readonly isLast: boolean;
}

const KEPT_MS = 2 * SHOWN_MS;
/** The period that is shown ends one or two beats ago. */
const READ_MS = SHOWN_MS + 3 * BEAT_INTERVAL_MS;
/** Each beat of any process removes at most this many old rows. */
const REMOVED_AT_ONCE = 100;

export async function writeBeat(client: PostgresClient, process: BeatingProcess, beat: Beat): Promise<void> {
  const { machine, kind, pid, startedAtMs, version, epoch } = process;
  await client.query(
    {
      name: 'write_beat',
      text: `WITH old AS (DELETE FROM process_beats WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM process_beats WHERE at < to_timestamp(($1::double precision - ${KEPT_MS}) / 1000)
        LIMIT ${REMOVED_AT_ONCE} FOR UPDATE SKIP LOCKED)))
     INSERT INTO process_beats (at, machine, kind, pid, started_at, version, epoch, counts, gauges, is_last)
     VALUES (to_timestamp($1::double precision / 1000), $2, $3, $4, to_timestamp($5::double precision / 1000), $6, $7,
             $8, $9, $10)
     ON CONFLICT (at, machine, kind, pid, started_at) DO NOTHING`,
    },
    [beat.atMs, machine, kind, pid, startedAtMs, version, epoch, beat.counts, beat.gauges, beat.isLast],
  );
}

/** Six beats. A process that was silent for longer has ended or stands still. */
const ALIVE_SECONDS = 30;

/** Whether the gateway of an epoch, on any machine, has recently written a beat and not yet its last one. */
export async function isBeating(client: PostgresClient, epoch: number): Promise<boolean> {
  const { rows } = await client.query<{ is_beating: boolean | null }>(
    `SELECT NOT bool_or(is_last) AS is_beating FROM process_beats
      WHERE epoch = $1 AND written_at > clock_timestamp() - make_interval(secs => ${ALIVE_SECONDS})`,
    [epoch],
  );
  return rows[0]?.is_beating === true;
}

/** What all processes counted together, by beat, for the period that is shown. */
export async function readBeatCounts(client: PostgresClient, nowMs: number): Promise<readonly BeatCounts[]> {
  const { rows } = await client.query<{ at_ms: number; key: string; count: number }>(
    `SELECT (extract(epoch FROM at) * 1000)::double precision AS at_ms, key, sum(value::double precision) AS count
       FROM process_beats CROSS JOIN LATERAL jsonb_each_text(counts)
      WHERE at > to_timestamp(($1::double precision - ${READ_MS}) / 1000) GROUP BY at, key`,
    [nowMs],
  );
  const byTime = new Map<number, Map<string, number>>();
  for (const { at_ms: atMs, key, count } of rows) {
    const counts = byTime.get(atMs) ?? new Map<string, number>();
    byTime.set(atMs, counts.set(key, count));
  }
  return [...byTime].map(([atMs, counts]) => ({ atMs, counts }));
}

interface StateRow extends Record<string, unknown> {
  readonly machine: string;
  readonly kind: string;
  readonly pid: number;
  readonly epoch: string | null;
  readonly version: string;
  readonly started_ms: number;
  readonly age_ms: number;
  readonly gauges: ProcessState['gauges'];
}

/** The processes that have not reported their end. The age of a last beat is measured by the database's clock alone. */
export async function readProcesses(client: PostgresClient, nowMs: number): Promise<readonly ProcessState[]> {
  const { rows } = await client.query<StateRow>(
    `SELECT machine, kind, pid, epoch::text, version, gauges,
            (extract(epoch FROM started_at) * 1000)::double precision AS started_ms,
            (extract(epoch FROM clock_timestamp() - written_at) * 1000)::double precision AS age_ms
       FROM (SELECT DISTINCT ON (machine, kind, pid, started_at) * FROM process_beats
              ORDER BY machine, kind, pid, started_at, at DESC) last
      WHERE NOT is_last ORDER BY machine, kind, started_at, pid`,
  );
  return rows.map((row) => ({
    machine: row.machine,
    kind: row.kind,
    pid: row.pid,
    epoch: row.epoch === null ? null : Number(row.epoch),
    version: row.version,
    startedAtMs: row.started_ms,
    lastBeatAtMs: nowMs - row.age_ms,
    gauges: row.gauges,
  }));
}
