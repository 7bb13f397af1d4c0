// What administrators do with uploaded files: list them, delete one, read how much room they take and how they were
// used.

import { z } from 'zod';
import type { Actor } from '../../domain/identity/actor.ts';
import type { Page, PageParams } from '../../domain/lists/page.ts';
import type { MediaObject } from '../../domain/media/media-object.ts';
import type { MediaDay, MediaUsage } from '../../domain/media/media-usage.ts';
import { DAY_MS } from '../../platform/durations.ts';
import { answerOf, pageOf, pageOrRefused, removedAnswer, shownOrRefused } from '../answers.ts';
import { pageQuery, showMoment, shownId, shownMoment } from '../identity/fields.ts';
import type { Answer, IdentityStore } from '../identity/identity-store.ts';
import { actorOf, idOf, listOf, type Tenancy } from '../identity/tenancy.ts';
import { type Operation, operation } from '../operation.ts';

/** The rows of uploaded files, which also exist where an installation keeps no more files. */
export interface MediaRows {
  listMedia(params: PageParams & { readonly organizationId: string }): Answer<Page<MediaObject>>;
  removeMedia(
    actor: Actor,
    object: { readonly organizationId: string; readonly id: string },
  ): Answer<{ readonly removed: true }>;
  readMediaUsage(params: {
    readonly organizationId: string;
    readonly from: string;
    readonly to: string;
  }): Answer<MediaUsage>;
  nowMs(): number;
}

const shown = z
  .object({
    id: shownId,
    content_type: z.string(),
    size: z.int(),
    created_at: shownMoment,
    uploaded_at: shownMoment.meta({ description: 'The last time that somebody uploaded these bytes.' }),
  })
  .meta({ id: 'Media' });

function show({ id, contentType, bytes, createdAtMs, uploadedAtMs }: MediaObject): z.output<typeof shown> {
  return {
    id,
    content_type: contentType,
    size: bytes,
    created_at: showMoment(createdAtMs),
    uploaded_at: showMoment(uploadedAtMs),
  };
}

export function listMedia(rows: MediaRows, identity: IdentityStore, tenancy: Tenancy): Operation {
  return operation({
    id: `listMedia${tenancy.suffix}`,
    summary: 'Lists the files that the organization uploaded, oldest first.',
    query: pageQuery,
    answer: pageOf(shown),
    run: async (input) =>
      pageOrRefused(
        await listOf(identity, tenancy, input, (organizationId) => rows.listMedia({ ...input.query, organizationId })),
        show,
      ),
  });
}

export function removeMedia(rows: MediaRows, tenancy: Tenancy): Operation {
  return operation({
    id: `removeMedia${tenancy.suffix}`,
    summary: 'Deletes an uploaded file: from now on nobody finds it. Its bytes are removed within a minute.',
    answer: removedAnswer,
    run: async (input) => {
      const object = { organizationId: tenancy.organizationId(input), id: idOf(input.ids, 'mediaId') };
      return shownOrRefused(await rows.removeMedia(actorOf(input.principal), object), (done) => done);
    },
  });
}

const DAYS_DEFAULT = 30;
const DAYS_MAX = 366;
const date = z.iso.date('must be a date, such as 2026-11-24').optional();

const shownDay = z.object({
  day: z.iso.date(),
  uploads: z.int(),
  deduped_uploads: z.int().meta({ description: 'Of the uploads, those of bytes that the organization had already.' }),
  uploaded_bytes: z.int(),
  downloads: z.int(),
  served_bytes: z.int(),
  stored_bytes_max: z.int().meta({ description: 'The most that was stored on the day.' }),
});

const shownUsage = z
  .object({
    files: z.int(),
    stored_bytes: z.int(),
    reserved_bytes: z.int().meta({ description: 'What uploads under way may add.' }),
    days: z.array(shownDay),
  })
  .meta({ id: 'MediaUsage' });

function showDay(day: MediaDay): z.output<typeof shownDay> {
  return {
    day: day.day,
    uploads: day.uploads,
    deduped_uploads: day.dedupedUploads,
    uploaded_bytes: day.uploadedBytes,
    downloads: day.downloads,
    served_bytes: day.servedBytes,
    stored_bytes_max: day.storedBytesMax,
  };
}

function showUsage({ files, storedBytes, reservedBytes, days }: MediaUsage): z.output<typeof shownUsage> {
  return { files, stored_bytes: storedBytes, reserved_bytes: reservedBytes, days: days.map(showDay) };
}

export function getMediaUsage(rows: MediaRows, tenancy: Tenancy): Operation {
  return operation({
    id: `getMediaUsage${tenancy.suffix}`,
    summary: 'Says what the organization’s files take, and day by day what they were used for; the last 30 days.',
    query: z.object({
      start_date: date.meta({ description: 'The first day, in UTC.' }),
      end_date: date.meta({ description: 'The last day, in UTC.' }),
    }),
    answer: answerOf(shownUsage),
    run: async (input) => {
      const { start_date: start, end_date: end } = input.query;
      const toMs = end === undefined ? rows.nowMs() : Date.parse(end);
      const fromMs = start === undefined ? toMs - (DAYS_DEFAULT - 1) * DAY_MS : Date.parse(start);
      if (fromMs > toMs) return { kind: 'invalid_field', field: 'start_date', reason: 'it must not be after end_date' };
      if (toMs - fromMs > DAYS_MAX * DAY_MS)
        return { kind: 'invalid_field', field: 'start_date', reason: `there may be ${DAYS_MAX} days at most` };
      const params = { organizationId: tenancy.organizationId(input), from: dayOf(fromMs), to: dayOf(toMs) };
      return shownOrRefused(await rows.readMediaUsage(params), showUsage);
    },
  });
}

function dayOf(timeMs: number): string {
  return showMoment(timeMs).slice(0, 10);
}
