// What every policy has beside its editor: the button that opens it, the table of its versions, from which one is taken
// into the editor, and the list of what a draft changes.

import { changesOf } from '../logic/changes.ts';
import { moment } from '../logic/format.ts';
import { openedPolicy, openPolicy } from '../state/policies.ts';
import { zone } from '../state/view.ts';
import { Badge } from './figures.tsx';
import { Card } from './page.tsx';
import { type Column, Table } from './table.tsx';

interface Version {
  readonly version: number;
  readonly created_at: string;
}

interface VersionsProps<Row extends Version> {
  readonly history: { readonly version: number; readonly versions: readonly Row[] };
  /** Columns after the version's number and time. */
  readonly columns: readonly Column<Row>[];
  readonly note?: string;
  readonly onTake: (taken: Row) => void;
}

export function Versions<Row extends Version>({ history, columns, note, onTake }: VersionsProps<Row>) {
  const present: readonly Column<Row>[] = [
    {
      name: 'Version',
      raw: ({ version }) => version,
      show: ({ version }) => (
        <>
          {version} {version === history.version && <Badge tone="good">current</Badge>}
        </>
      ),
    },
    { name: 'Since', raw: ({ created_at: at }) => at, show: ({ created_at: at }) => moment(at, zone.value) },
  ];
  return (
    <Card title="Versions" {...(note === undefined ? {} : { note })}>
      <Table
        caption="Versions"
        columns={[...present, ...columns]}
        rows={history.versions}
        actions={(version) => (
          <button type="button" class="small" onClick={() => onTake(version)}>
            Take into the editor
          </button>
        )}
      />
    </Card>
  );
}

/** The button in the list of policies that opens one in the editor. */
export function EditButton({ name }: { readonly name: string }) {
  return (
    <button type="button" class="small" aria-pressed={name === openedPolicy.value} onClick={() => openPolicy(name)}>
      Edit
    </button>
  );
}

/** One line for each difference. */
export function Changes({ before, after }: { readonly before: object; readonly after: object }) {
  return (
    <span class="changes mono">
      {changesOf(before, after).map((line, index) => (
        <span key={index}>{line}</span>
      ))}
    </span>
  );
}
