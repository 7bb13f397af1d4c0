// The files that clients of the organization have uploaded, and the storage that they take.

import { type AnswerOf, call, curlCommand } from '../api.ts';
import { bytes, whole } from '../logic/format.ts';
import { Stat, Stats } from '../parts/figures.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { ManagedList } from '../parts/managed-list.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, momentColumn, numberColumn } from '../parts/table.tsx';
import { useRead } from '../state/load.ts';
import { usePages } from '../state/pages.ts';
import { tollgateCommands } from '../state/session.ts';

const PATH = '/v1/admin/active-org/media';
type File = AnswerOf<typeof PATH>['data'][number];

const COLUMNS: readonly Column<File>[] = [
  { name: 'File', raw: ({ id }) => id, show: ({ id }) => <code>{id}</code> },
  { name: 'Type', raw: ({ content_type: type }) => type },
  numberColumn('Size', ({ size }) => size, bytes),
  momentColumn('Uploaded', ({ uploaded_at: at }) => at),
];

export function Media() {
  const list = usePages<File>(PATH, { limit: 100 });
  const usage = useRead(`${PATH}/usage`);
  return (
    <Page
      title="Media"
      lead="Files that clients have uploaded. Files with the same bytes are stored once."
      commands={[curlCommand(PATH), curlCommand(`${PATH}/usage`), ...tollgateCommands('media list', 'media usage')]}
    >
      <Loaded load={usage} permission="org.admin">
        {({ data }) => (
          <Stats>
            <Stat name="Files" value={whole(data.files)} />
            <Stat name="Stored" value={bytes(data.stored_bytes)} />
            <Stat name="Reserved" value={bytes(data.reserved_bytes)} note="uploads under way" />
          </Stats>
        )}
      </Loaded>
      <ManagedList
        title="Files"
        load={list}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="org.admin"
        empty={
          <p>
            No file. Clients send them to <code>POST /v1/media/upload</code>.
          </p>
        }
        removal={{
          verb: 'Delete',
          ask: ({ id }) => `The bytes of ${id} are deleted, and links to them stop working.`,
          send: ({ id }) => call('delete', `${PATH}/{mediaId}`, { pathParameters: { mediaId: id } }),
        }}
      />
    </Page>
  );
}
