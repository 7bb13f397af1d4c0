// The audit log. Administrators see the organization's entries; administrators of the platform may see all entries.

import { type AnswerOf, curlCommand } from '../api.ts';
import { changesOf } from '../logic/changes.ts';
import { moment } from '../logic/format.ts';
import { ManagedList } from '../parts/managed-list.tsx';
import { Page } from '../parts/page.tsx';
import { type Column, NamedCell } from '../parts/table.tsx';
import { params, setParams } from '../state/address.ts';
import { useRead } from '../state/load.ts';
import { may, tollgateCommands } from '../state/session.ts';
import { zone } from '../state/view.ts';

type Entry = AnswerOf<'/v1/admin/active-org/audit'>['data'][number];

const COLUMNS: readonly Column<Entry>[] = [
  { name: 'When', raw: ({ at }) => at, show: ({ at }) => moment(at, zone.value) },
  { name: 'Who', raw: ({ actor }) => actor.label, show: ({ actor }) => shortened(actor.label || actor.kind) },
  { name: 'What', raw: ({ action }) => action, show: ({ action }) => <NamedCell>{action}</NamedCell> },
  {
    name: 'Target',
    raw: ({ target }) => `${target.kind} ${target.id}`,
    show: ({ target }) => (
      <>
        {target.kind} <code>{target.id.slice(0, 8)}</code>
      </>
    ),
  },
  {
    name: 'Change',
    raw: ({ before, after }) => changesOf(before, after).join('; '),
    show: ({ before, after }) => <Changes lines={changesOf(readable(before), readable(after))} />,
  },
];

/** Shortens each UUID in a text to its first eight digits. */
function shortened(text: string): string {
  return text.replace(/\b([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g, '$1');
}

/** Makes a state of the log readable: `...AtMs` fields become dates in the chosen time zone, ids are shortened. */
function readable(state: unknown): unknown {
  if (typeof state === 'string') return shortened(state);
  if (Array.isArray(state)) return state.map(readable);
  if (typeof state !== 'object' || state === null) return state;
  return Object.fromEntries(
    Object.entries(state).map(([name, value]) =>
      name.endsWith('AtMs') && typeof value === 'number'
        ? [name.slice(0, -2), moment(new Date(value).toISOString(), zone.value)]
        : [name, readable(value)],
    ),
  );
}

const SHOWN_MAX = 5;

function Changes({ lines }: { readonly lines: readonly string[] }) {
  const list = (some: readonly string[]) => (
    <ul class="plain">
      {some.map((line) => (
        <li key={line} class="note">
          {line}
        </li>
      ))}
    </ul>
  );
  return (
    <>
      {list(lines.slice(0, SHOWN_MAX))}
      {lines.length > SHOWN_MAX && (
        <details>
          <summary class="note">{lines.length - SHOWN_MAX} more</summary>
          {list(lines.slice(SHOWN_MAX))}
        </details>
      )}
    </>
  );
}

export function Audit() {
  const isPlatform = may('platform.admin') && params.value['of'] === 'platform';
  const path = isPlatform ? '/v1/admin/audit' : '/v1/admin/active-org/audit';
  const cursor = params.value['cursor'];
  const load = useRead(path, { query: { limit: 100, cursor } });
  const next = load.data?.next_cursor;
  return (
    <Page
      title="Audit"
      lead="Every change, and who made it. Entries are never changed."
      tools={
        may('platform.admin') && (
          <button
            type="button"
            aria-pressed={isPlatform}
            onClick={() => setParams({ of: isPlatform ? null : 'platform', cursor: null })}
          >
            The whole platform
          </button>
        )
      }
      commands={[curlCommand(path), ...(isPlatform ? ['tollgate audit'] : tollgateCommands('audit'))]}
    >
      <ManagedList
        title="Changes"
        load={load}
        rowsOf={({ data }) => data}
        columns={COLUMNS}
        permission="org.admin"
        empty="Nothing has been changed yet."
      />
      {next != null && (
        <div class="more">
          <button type="button" onClick={() => setParams({ cursor: next })}>
            Older changes
          </button>
        </div>
      )}
    </Page>
  );
}
