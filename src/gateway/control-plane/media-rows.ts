// Provides the rows of uploaded files to their administrators.

import type { MediaRows } from '../../control-plane/media/manage-media.ts';
import type { Clock } from '../../platform/clock.ts';
import { listMediaObjects, removeMediaObject } from '../../storage/postgres/media/media-objects.ts';
import { readMediaUsage } from '../../storage/postgres/media/media-usage.ts';
import type { Postgres } from '../../storage/postgres/pool.ts';

export function createMediaRows(postgres: Postgres, clock: Clock): MediaRows {
  return {
    listMedia: (params) => listMediaObjects(postgres, params),
    removeMedia: (actor, object) => removeMediaObject(postgres, actor, object),
    readMediaUsage: (params) => readMediaUsage(postgres, params),
    nowMs: () => clock.nowMs(),
  };
}
