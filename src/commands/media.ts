// `tollgate media`: lists and deletes uploaded files, and records that their directory has moved.

import type { MediaObject } from '../domain/media/media-object.ts';
import { systemClock } from '../platform/clock.ts';
import { DAY_MS } from '../platform/durations.ts';
import { homeOf, mediaDirectory } from '../storage/media/open-objects.ts';
import { moveMediaHome } from '../storage/postgres/media/media-home.ts';
import { listMediaObjects, removeMediaObject } from '../storage/postgres/media/media-objects.ts';
import { readMediaUsage } from '../storage/postgres/media/media-usage.ts';
import {
  type Command,
  type CommandContext,
  type OptionValues,
  requireOption,
  runAction,
  UsageFault,
} from './command/command.ts';
import { withDatabase } from './command/database.ts';
import { commandActor, expectDone, findOrganization, listAll } from './command/identity.ts';

export const mediaCommand: Command = {
  usage: [
    'tollgate media list --organization SLUG',
    'tollgate media remove --organization SLUG --id ID',
    'tollgate media usage --organization SLUG [--days 30]',
    'tollgate media home',
  ],
  summary:
    'Lists the files that an organization uploaded, deletes one, or prints their size and use, day by day, as ' +
    'CSV. "home" records that the files of this installation now lie where the settings say, after they were ' +
    'moved or lost.',
  run: (args, context) => runAction(args, context, OPTIONS, { list, remove, usage, home: moveHome }),
};

const OPTIONS = { organization: { type: 'string' }, id: { type: 'string' }, days: { type: 'string' } } as const;

type Values = OptionValues<typeof OPTIONS>;

async function list({ organization }: Values, { environment, print }: CommandContext): Promise<number> {
  const slug = requireOption(organization, 'organization');
  await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    for await (const object of listAll((params) => listMediaObjects(postgres, { ...params, organizationId }), 'files'))
      print(describe(object));
  });
  return 0;
}

function describe({ id, contentType, bytes, createdAtMs, uploadedAtMs }: MediaObject): string {
  const moments = [createdAtMs, uploadedAtMs].map((ms) => new Date(ms).toISOString());
  return [id, contentType, bytes, ...moments].join('\t');
}

async function remove({ organization, id: given }: Values, { environment }: CommandContext): Promise<number> {
  const slug = requireOption(organization, 'organization');
  const id = requireOption(given, 'id').toLowerCase();
  await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const removed = await removeMediaObject(postgres, commandActor(environment), { organizationId, id });
    expectDone(removed, `file ${id} of "${slug}"`);
  });
  return 0;
}

const USAGE_COLUMNS = [
  'day',
  'uploads',
  'deduped_uploads',
  'uploaded_bytes',
  'downloads',
  'served_bytes',
  'stored_bytes_max',
] as const;

async function usage({ organization, days = '30' }: Values, { environment, print }: CommandContext): Promise<number> {
  const slug = requireOption(organization, 'organization');
  if (!/^[1-9]\d{0,3}$/.test(days)) throw new UsageFault(`--days: must be a whole number above 0, got "${days}"`);
  const nowMs = systemClock.nowMs();
  const dayOf = (timeMs: number): string => new Date(timeMs).toISOString().slice(0, 10);
  const found = await withDatabase(environment, async (postgres) => {
    const { id: organizationId } = await findOrganization(postgres, slug);
    const from = dayOf(nowMs - (Number(days) - 1) * DAY_MS);
    return expectDone(
      await readMediaUsage(postgres, { organizationId, from, to: dayOf(nowMs) }),
      `organization "${slug}"`,
    );
  });
  print(USAGE_COLUMNS.join(','));
  for (const day of found.days)
    print(
      [
        day.day,
        day.uploads,
        day.dedupedUploads,
        day.uploadedBytes,
        day.downloads,
        day.servedBytes,
        day.storedBytesMax,
      ].join(','),
    );
  return 0;
}

async function moveHome(_: Values, { environment, print }: CommandContext): Promise<number> {
  await withDatabase(environment, async (postgres, { dataDirectory, media }) => {
    const directory = mediaDirectory(dataDirectory);
    const storage = media?.storage ?? 'disk';
    await moveMediaHome(postgres, homeOf(storage, directory));
    const place = storage === 'disk' ? directory : storage.url;
    print(`uploaded files are in ${place} from now on; restart the installation`);
  });
  return 0;
}
